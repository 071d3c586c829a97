package agent

import (
	"errors"
	"path"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// start opens the log at the place to read from. It returns the event that the client must receive
// about the log, such as a lost or truncated file.
func (t *tailer) start() (event agentv1.TailEvent, err error) {
	if from := t.request.GetFrom(); from != nil {
		return t.resume(from)
	}
	if err := t.open(); err != nil {
		return agentv1.TailEvent_TAIL_EVENT_NONE, err
	}
	return agentv1.TailEvent_TAIL_EVENT_NONE, t.begin()
}

// place returns the position in the file after the buffer's first `behind` bytes.
func (t *tailer) place(behind int) *agentv1.TailPlace {
	if t.file == nil {
		return nil
	}
	offset := t.offset - t.length(t.buffer[behind:t.held])
	if t.wide != nil {
		offset -= int64(t.wide.odd)
	}
	return t.identified(&agentv1.TailPlace{Volume: t.id.Volume, Index: t.id.Index, High: t.id.High, Offset: offset})
}

// resume continues in the file that the client read last, even if it has been rotated since. The
// following polls find the log that replaced it.
func (t *tailer) resume(from *agentv1.TailPlace) (event agentv1.TailEvent, err error) {
	wanted := platform.FileID{Volume: from.GetVolume(), Index: from.GetIndex(), High: from.GetHigh()}
	if err := t.openSame(wanted); errors.Is(err, fault.ErrNotExist) {
		return agentv1.TailEvent_TAIL_EVENT_LOST, t.reopen()
	} else if err != nil {
		return agentv1.TailEvent_TAIL_EVENT_NONE, err
	}
	if err := t.recognise(); err != nil {
		return agentv1.TailEvent_TAIL_EVENT_NONE, err
	}
	info, err := t.files.Stat(t.request.GetPath())
	if err == nil && info.ID == t.id && info.Size < from.GetOffset() {
		t.known = false
		return agentv1.TailEvent_TAIL_EVENT_TRUNCATED, t.seek(0)
	}
	return agentv1.TailEvent_TAIL_EVENT_NONE, t.seek(from.GetOffset())
}

// reopen opens the file that has the log's name now, to read it from its beginning.
func (t *tailer) reopen() error {
	if err := t.open(); err != nil {
		return err
	}
	return t.seek(0)
}

// openSame opens the file that has the ID `wanted`: the log itself, or a file in its folder whose
// name begins with the log's name without its extension. If no such file has this ID, the error is
// fault.ErrNotExist.
func (t *tailer) openSame(wanted platform.FileID) error {
	err := t.open()
	if err == nil && t.id == wanted {
		return nil
	}
	t.close()
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return err
	}
	now := t.request.GetPath()
	cut := strings.LastIndexAny(now, `\/`)
	if cut < 0 {
		return fault.ErrNotExist
	}
	entries, err := t.files.List(now[:cut+1])
	if err != nil {
		return err
	}
	name := now[cut+1:]
	stem := strings.ToLower(strings.TrimSuffix(name, path.Ext(name)))
	for _, entry := range entries {
		if entry.Folder || !strings.HasPrefix(strings.ToLower(entry.Path[strings.LastIndexAny(entry.Path, `\/`)+1:]),
			stem) {
			continue
		}
		// A file that is renamed after its folder was listed is not found.
		info, err := t.files.Stat(entry.Path)
		if err != nil || info.ID != wanted {
			continue
		}
		file, err := t.files.Open(entry.Path)
		if err != nil {
			return err
		}
		t.use(file, info.ID)
		return nil
	}
	return fault.ErrNotExist
}
