package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// sinceStart returns a position between `first` and `size` from which a reading finds every line of the
// time `since` and later, and gives each the same time as a reading of the whole file. Logs are only nearly sorted,
// since clocks are set. So the log counts as older before its last t.run successive lines that are.
//
// sinceStart goes back from the end, step by step, and reads each part of the file once.
func (t *tailer) sinceStart(first, size int64) (int64, error) {
	step, judged := t.step, size
	for at := size; ; step *= 2 {
		at = max(first, at-step)
		at -= (at - first) % t.unit()
		s := search{reader: logline.Reader{Written: t.written}, since: t.request.GetSince().AsTime(), run: t.run, whole: at == first,
			start: first, anchor: -1, from: size}
		err := t.eachLine(at, first, func(raw []byte, at int64, isFragment bool) bool {
			s.line(raw, at, isFragment)
			return at < judged || s.length > 0
		})
		if err != nil {
			return 0, err
		}
		if start, ok := s.result(); ok {
			return start, nil
		}
		judged = min(judged, s.from)
	}
}

// search looks through a part of a log for the place from which the log is read.
type search struct {
	reader logline.Reader
	since  time.Time
	run    int
	whole  bool // the part begins where the file does

	from    int64 // where judging began: before that, the reader does not know the lines before it
	length  int   // of the run of early lines
	anchor  int64 // the last early line from which a new reader reads alike, or -1
	ended   bool  // a run of t.run early lines was found, or the beginning of the file
	started bool  // a line of the time `since` or later followed it
	start   int64 // where to read from
}

// line takes the next line of the file, which may have several of the log.
func (s *search) line(raw []byte, at int64, isFragment bool) {
	n := 0
	logline.EachText(raw, func(text []byte) {
		if n++; n == 1 && isFragment {
			s.reader.Fragment(text)
			return
		}
		s.judge(s.reader.Line(text), at, n == 1)
	})
}

func (s *search) judge(line logline.Read, at int64, canBegin bool) {
	if !line.IsHead || !s.whole && !s.reader.Settled() {
		return
	}
	s.from = min(s.from, at)
	if !line.Time.Before(s.since) {
		s.length = 0
		if s.whole || s.ended {
			s.begin()
		}
		return
	}
	s.length++
	if line.IsAnchor && canBegin {
		s.anchor = at
	}
	if s.length >= s.run || s.whole && !s.started && s.anchor < 0 {
		s.ended, s.started = true, false
	}
}

// begin sets the start, at the first line that is wanted behind a run.
func (s *search) begin() {
	if !s.started && s.anchor >= 0 {
		s.start = s.anchor
	}
	s.started = true
}

// result returns the start. ok is false if it is in an earlier part of the file.
func (s *search) result() (start int64, ok bool) {
	if s.ended || s.whole {
		s.begin()
	}
	return s.start, s.ended || s.whole
}

// eachLine calls each for the lines from the first one that begins at or after `at`, until each returns false. Of a line that
// is longer than the buffer, each gets several parts, of which only the first is not a fragment.
func (t *tailer) eachLine(at, first int64, each func(raw []byte, at int64, isFragment bool) bool) error {
	isWithin := at > first // the line that begins before `at` is not wanted
	if isWithin {
		at -= t.unit()
	}
	isFragment := false
	defer func() { t.held = 0 }()
	t.held = 0
	if err := t.seek(at); err != nil {
		return err
	}
	for {
		n, err := t.read()
		isEnd := n == 0 && err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !isEnd {
			return t.failed(err)
		}
		used := 0
		for used < t.held {
			raw := firstLine(t.buffer[used:t.held])
			isWhole := raw[len(raw)-1] == '\n'
			if !isWhole && !isEnd && t.held-used+tailSpare < len(t.buffer) {
				break
			}
			if !isWithin && !each(raw, at, isFragment) {
				return nil
			}
			isWithin, isFragment = isWithin && !isWhole, !isWhole && !bytes.HasSuffix(raw, []byte{0, 0})
			used += len(raw)
			at += t.length(raw)
		}
		t.held = copy(t.buffer, t.buffer[used:t.held])
		if isEnd {
			return nil
		}
	}
}

// lastWrite returns when the log was last written, in the zone of the machine, if the log's last line without a
// year is of that day. Otherwise it returns the present time: while a program has the file open, Windows may show a
// time of days ago.
func (t *tailer) lastWrite(first, size int64) (time.Time, error) {
	info, err := t.files.Stat(t.request.GetPath())
	if err != nil || t.now.Sub(info.Modified) < yearDoubt {
		return t.now, nil //nolint:nilerr // the log may have been renamed; then its age is not known
	}
	modified := info.Modified.In(t.now.Location())
	var last time.Time
	err = t.eachLine(max(first, size-tailBlock), first, func(raw []byte, _ int64, isFragment bool) bool {
		logline.EachText(raw, func(text []byte) {
			if l := logline.Parse(text, modified); !isFragment && !l.Time.IsZero() {
				last = l.Time
			}
		})
		return true
	})
	if err != nil {
		return t.now, fmt.Errorf("find the year of the lines: %w", err)
	}
	if modified.Sub(last).Abs() > yearDoubt {
		return t.now, nil
	}
	return modified, nil
}

// yearDoubt is the difference between a log's last line and its last write from which on one of the two is wrong.
const yearDoubt = 36 * time.Hour
