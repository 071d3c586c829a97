package logline

import "time"

// memory is the number of lines for which a time that is beyond doubt is compared with doubtful ones.
const memory = 100

// maxEarly is how far a doubtful time may be before the latest time beyond doubt: logs are only nearly sorted.
const maxEarly = time.Minute

// Run is the number of successive lines outside of a period that end the reading of a log by time. Logs are only
// nearly sorted: programs write from several threads, and clocks are set.
const Run = 10_000

// Reader parses the lines of one log in their order. It remembers the lines before: a line without a
// time or a level, such as one of a stack trace, gets those of the line that it continues. A line that
// begins with a date and then prose may be a line of its own or a part of a message of several
// lines. In a log whose latest lines have other heads, it counts as a line of its own only if its
// time continues theirs.
//
// The zero Reader is at the beginning of a log. A Reader keeps a few words, however long the log is.
type Reader struct {
	Written time.Time // the time of the log's last write, in the zone of the machine; see Parse

	time      time.Time
	level     Level
	certain   time.Time // the latest time beyond doubt
	lines     int       // since then, or since the beginning
	isCertain bool      // certain is set
	streams   map[string]Level
}

// Read is a line, with what the lines before it add.
type Read struct {
	Line
	// IsHead reports whether the line has a time of its own.
	IsHead bool
	// IsAnchor reports whether a new Reader that begins with this line reads all further lines alike.
	IsAnchor bool
	// Time is the time of the line, or of the line that it continues; zero if there is none.
	Time time.Time
}

// Line reads the next line.
func (r *Reader) Line(text []byte) Read {
	line := Parse(text, r.Written)
	if line.Text != "" {
		r.lines++
	}
	if line.doubtful && r.doubts(line.time) {
		line.head = head{}
		line.Format, line.Level = Plain, Unknown
	}
	read := Read{Line: line, IsHead: !line.time.IsZero()}
	switch {
	case read.IsHead && !line.doubtful:
		r.certain, r.isCertain, r.lines = line.time, true, 0
		read.IsAnchor = true
	case read.IsHead:
		read.IsAnchor = !r.remembers()
	}
	if read.IsHead {
		r.time = line.time
	}
	read.Time, read.Level = r.time, r.levelOf(line)
	return read
}

// Fragment reads a line that is a part of a longer one, which begins or ends elsewhere. It has no head.
func (r *Reader) Fragment(text []byte) Read {
	line := Parse(text, r.Written)
	line.head, line.Format = head{}, Plain
	return Read{Line: Line{Text: line.Text, Level: r.level}, Time: r.time}
}

// HasTime reports whether a line so far had a time.
func (r *Reader) HasTime() bool { return !r.time.IsZero() }

// Settled reports whether a Reader that began earlier in the log would read all further lines alike,
// except that it may know a time and a level for those before the next head.
func (r *Reader) Settled() bool { return r.isCertain || r.lines > memory }

func (r *Reader) remembers() bool { return r.isCertain && r.lines <= memory }

// doubts reports whether a time is a date in the text of a message, as far as the lines before show.
func (r *Reader) doubts(t time.Time) bool {
	return t.After(r.Written.Add(tolerance)) || r.remembers() && t.Before(r.certain.Add(-maxEarly))
}

// levelOf returns the level of a line, or of the line that it continues. A container's lines all have a time,
// so that they continue a line only if they are indented, or if that line reports the crash of the program.
func (r *Reader) levelOf(line Line) Level {
	if line.Format != CRI {
		if !line.time.IsZero() || line.level != Unknown {
			r.level = line.level
		}
		return r.level
	}
	if r.streams == nil {
		r.streams = map[string]Level{}
	}
	last := r.streams[line.Stream]
	isIndented := len(line.Text) > 0 && (line.Text[0] == ' ' || line.Text[0] == '\t')
	level := line.level
	if level == Unknown && (isIndented || last == crashed) {
		level = last
	}
	if line.crash {
		level = crashed
	}
	r.streams[line.Stream] = level
	return min(level, Fatal)
}

// crashed is the level of a program's crash. Later lines of its stream are about the crash.
const crashed = Fatal + 1
