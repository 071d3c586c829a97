package simulated

import "github.com/swdt-dev/swdt/internal/platform"

// nameSurrogate is the bit of a reparse tag that marks a file as standing for another (winnt.h).
const nameSurrogate = 0x20000000

// TagDedup is IO_REPARSE_TAG_DEDUP, the tag that the Data Deduplication of Windows Server gives to files that are some
// days old. Programs read and write such a file like any other (Go's os/types_windows.go treats it as regular).
const TagDedup = 0x80000013

// Reparse makes a file a reparse point with a tag. The content stays.
func (m *Machine) Reparse(path string, tag uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.disk.find(path, false)
	if err == nil {
		f.tag = tag
	}
	return err
}

// id returns the ID of a file. The ID of 64 bits "is not guaranteed to be unique on ReFS"
// (BY_HANDLE_FILE_INFORMATION on learn.microsoft.com); the lower halves of all files are equal here.
func (f *file) id() platform.FileID {
	if f.refs {
		return platform.FileID{Volume: volumeSerial, Index: 1, High: f.index}
	}
	return platform.FileID{Volume: volumeSerial, Index: f.index}
}
