//! What tables are read from: cells of files, each told by its own bytes.

pub mod csv;
