package windows

import "testing"

// The tags are those of winnt.h and of [MS-FSCC] 2.1.2.1.
func TestReparseTags(t *testing.T) {
	for tag, want := range map[uint32]bool{
		0xA0000003: true,  // IO_REPARSE_TAG_MOUNT_POINT, of junctions
		0xA000000C: true,  // IO_REPARSE_TAG_SYMLINK
		0xA000001D: true,  // IO_REPARSE_TAG_LX_SYMLINK
		0xA0000027: true,  // IO_REPARSE_TAG_WCI_LINK
		0x80000013: false, // IO_REPARSE_TAG_DEDUP
		0x80000017: false, // IO_REPARSE_TAG_WOF
		0x80000018: false, // IO_REPARSE_TAG_WCI
		0x9000001A: false, // IO_REPARSE_TAG_CLOUD
		0x80000023: false, // IO_REPARSE_TAG_AF_UNIX
		0xC0000004: false, // IO_REPARSE_TAG_HSM
	} {
		if isNameSurrogate(tag) != want {
			t.Errorf("tag %#x: a link is %v, want %v", tag, !want, want)
		}
	}
}
