"""Protocols whose users do not hand their data to anybody: what each sends, and what is made of it."""
