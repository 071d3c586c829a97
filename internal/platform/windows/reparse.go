package windows

// isNameSurrogate reports whether a reparse point stands for another file or folder, as a symbolic link and a junction
// do: IsReparseTagNameSurrogate of winnt.h. Other reparse points are files of their own, whose content a filter driver
// provides: the Data Deduplication of Windows Server makes them of files that are some days old.
func isNameSurrogate(tag uint32) bool { return tag&0x20000000 != 0 }
