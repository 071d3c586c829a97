package agent

import (
	"errors"
	"path"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
)

// start opens the log where it is to be read from; the event is what the client
// has to know of it.
func (t *tailer) start() (event string, err error) {
	if from := t.request.GetFrom(); from != nil {
		return t.resume(from)
	}
	if err := t.open(); err != nil {
		return "", err
	}
	return "", t.begin()
}

// place is behind the first bytes of what the buffer holds.
func (t *tailer) place(behind int) *agentv1.TailPlace {
	if t.file == nil {
		return nil
	}
	offset := t.offset - t.length(t.buffer[behind:t.held])
	if t.wide != nil {
		offset -= int64(t.wide.odd)
	}
	return t.identified(&agentv1.TailPlace{Volume: t.id.Volume, Index: t.id.Index, Offset: offset})
}

// resume goes on in the file that was read, also where it was rotated away since:
// what came after it is found by following.
func (t *tailer) resume(from *agentv1.TailPlace) (event string, err error) {
	wanted := host.FileID{Volume: from.GetVolume(), Index: from.GetIndex()}
	if err := t.openSame(wanted); errors.Is(err, host.ErrNotExist) {
		return tailLost, t.anew()
	} else if err != nil {
		return "", err
	}
	if err := t.recognise(); err != nil {
		return "", err
	}
	info, err := t.files.Stat(t.request.GetPath())
	if err == nil && info.ID == t.id && info.Size < from.GetOffset() {
		t.known = false
		return tailTruncated, t.seek(0)
	}
	return "", t.seek(from.GetOffset())
}

// anew begins with the file that has the log's name now.
func (t *tailer) anew() error {
	if err := t.open(); err != nil {
		return err
	}
	return t.seek(0)
}

// openSame opens the file with that ID: it has the log's name, or one that begins
// alike and stands beside it.
func (t *tailer) openSame(wanted host.FileID) error {
	err := t.open()
	if err == nil && t.id == wanted {
		return nil
	}
	t.close()
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return err
	}
	now := t.request.GetPath()
	cut := strings.LastIndexAny(now, `\/`)
	if cut < 0 {
		return host.ErrNotExist
	}
	entries, err := t.files.List(now[:cut+1])
	if err != nil {
		return err
	}
	name := now[cut+1:]
	stem := strings.ToLower(strings.TrimSuffix(name, path.Ext(name)))
	for _, entry := range entries {
		if entry.Folder || !strings.HasPrefix(strings.ToLower(entry.Path[strings.LastIndexAny(entry.Path, `\/`)+1:]), stem) {
			continue
		}
		// What is renamed once more in between is not found.
		info, err := t.files.Stat(entry.Path)
		if err != nil || info.ID != wanted {
			continue
		}
		file, err := t.files.Open(entry.Path)
		if err != nil {
			return err
		}
		t.take(file, info.ID)
		return nil
	}
	return host.ErrNotExist
}
