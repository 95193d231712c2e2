//! A temporary file of words without a name.

use crate::{Error, Result, memory::room};
use std::{
    fs::{File, OpenOptions, remove_file},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Bytes written or read at a time.
const BUFFER: usize = 1 << 20;
/// Names tried before a directory is given up.
const ATTEMPTS: usize = 16;
const WORD: usize = size_of::<u64>();

/// Words on disk: readable by the system's user alone, and without a name as soon as the file is open, so that it is
/// gone when this process is, however it ends. Windows has no files without names: there the file is deleted when it is
/// closed.
#[derive(Debug)]
pub(super) struct Spill {
    file: Mutex<File>,
    written: u64,
}

/// An error in the words of the standard library for its kind, without names or data.
fn failed(what: &str, error: &io::Error) -> Error {
    Error::disk(format!("a temporary file could not be {what}: {}", error.kind()))
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(windows)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_ATTRIBUTE_TEMPORARY: u32 = 0x100;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    options.share_mode(0).attributes(FILE_ATTRIBUTE_TEMPORARY).custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
}

#[cfg(not(any(unix, windows)))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

fn new_file(directory: &Path) -> Result<File> {
    for _ in 0..ATTEMPTS {
        let name = getrandom::u64().map_err(|error| Error::Entropy { message: error.to_string() })?;
        let path: PathBuf = directory.join(format!(".userdp-{name:016x}"));
        match private(OpenOptions::new().read(true).write(true).create_new(true)).open(&path) {
            Ok(file) => {
                if !cfg!(windows) {
                    remove_file(&path).map_err(|error| failed("removed", &error))?;
                }
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("made", &error)),
        }
    }
    Err(Error::disk("a temporary file could not be made: all names are taken"))
}

impl Spill {
    /// An empty file in a directory; in the system's for temporary files for `None`.
    pub(super) fn new(directory: Option<&Path>) -> Result<Self> {
        let file = match directory {
            Some(directory) => new_file(directory),
            None => new_file(&std::env::temp_dir()),
        };
        Ok(Self { file: Mutex::new(file?), written: 0 })
    }

    /// The number of words.
    pub(super) fn words(&self) -> u64 {
        self.written
    }

    /// Writes words behind all others; after an error there may be some of them, which are not counted.
    pub(super) fn append<'a>(&mut self, slices: impl Iterator<Item = &'a [u64]>) -> Result<()> {
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        let at = SeekFrom::Start(self.written * WORD as u64);
        file.seek(at).map_err(|error| failed("written", &error))?;
        let mut buffer: Vec<u8> = room("rows", BUFFER)?;
        let mut words = 0;
        for slice in slices {
            for piece in slice.chunks(BUFFER / WORD) {
                if buffer.len() + piece.len() * WORD > BUFFER {
                    file.write_all(&buffer).map_err(|error| failed("written", &error))?;
                    buffer.clear();
                }
                buffer.extend(piece.iter().flat_map(|word| word.to_le_bytes()));
                words += piece.len() as u64;
            }
        }
        file.write_all(&buffer).map_err(|error| failed("written", &error))?;
        self.written += words;
        Ok(())
    }

    /// Calls with the words from one place to another, in order and in pieces of whole records of `record` words.
    pub(super) fn read(
        &self,
        (start, end): (u64, u64),
        record: usize,
        mut visit: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let most = (BUFFER / WORD / record).max(1) * record;
        let longest = usize::try_from(end - start).unwrap_or(usize::MAX).min(most);
        let (mut bytes, mut words): (Vec<u8>, Vec<u64>) =
            (room("rows", longest * WORD)?, room("rows", longest)?);
        let mut at = start;
        while at < end {
            let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(most);
            bytes.resize(len * WORD, 0);
            {
                let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(at * WORD as u64)).map_err(|error| failed("read", &error))?;
                file.read_exact(&mut bytes).map_err(|error| failed("read", &error))?;
            }
            words.clear();
            words.extend(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
            visit(&words)?;
            at += len as u64;
        }
        Ok(())
    }
}
