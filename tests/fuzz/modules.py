"""Whose branches guide the fuzzing of each parser; nothing of the package is imported here."""

MODULES = {
    "reports": "checker.values checker.check checker.audits checker.claims checker.guesses report.base",
    "certificates": "checker.values checker.check checker.certificates report.base report.certificate",
    "messages": "protocols.messages protocols.local.protocol protocols.local.items protocols.shuffle.protocol",
    "ledgers": "accounting.ledger accounting.slots accounting.saved_losses exact.encoding durable_log",
    "schemas": "cli.arguments cli.table tables.schema tables.expressions tables.aggregates",
}
