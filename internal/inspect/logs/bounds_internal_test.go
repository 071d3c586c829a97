package logs

import (
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// A node that reports another file for each piece does not use memory for each of them.
func TestPlacesOfALyingNodeAreBounded(t *testing.T) {
	s := &show{options: Options{Follow: true}, owners: map[fileID]string{}, places: map[fileID]*positions{}}
	for i := range uint64(3 * maxFiles) {
		if !s.owns(File{Path: `C:\a.log`}, &agentv1.TailPlace{Index: i + 1}) {
			t.Fatalf("file %d is another's", i)
		}
	}
	switch {
	case len(s.owners) > maxFiles:
		t.Errorf("len(s.owners) = %v, want at most %v: %+v", len(s.owners), maxFiles, s.owners)
	case len(s.places) > maxFiles:
		t.Errorf("len(s.places) = %v, want at most %v: %+v", len(s.places), maxFiles, s.places)
	case len(s.followed()) > 2*maxFiles:
		t.Errorf("len(s.followed()) is wrong; %d owners, %d places", len(s.owners), len(s.places))
	}
}

// On ReFS, the lower halves of the IDs of files may be equal, or 0.
func TestFilesOfReFSAreDifferent(t *testing.T) {
	s := &show{options: Options{Follow: true}, owners: map[fileID]string{}, places: map[fileID]*positions{}}
	for i, path := range []string{`C:\a.log`, `C:\b.log`} {
		if !s.owns(File{Path: path}, &agentv1.TailPlace{High: uint64(i + 1)}) {
			t.Errorf("%s is another's", path)
		}
	}
	if s.owns(File{Path: `C:\c.log`}, &agentv1.TailPlace{High: 1}) {
		t.Error("a second name of the first file is read too")
	}
}
