package logline

import (
	"bytes"
	"strconv"
	"time"
)

// tolerance is how far a line may be later than its log's last write. The clock of a node, or its zone,
// may have been set meanwhile.
const tolerance = 24 * time.Hour

func digit(c byte) bool { return c >= '0' && c <= '9' }

// scanner reads the numbers and separators of a time. If an expected number or separator is
// missing, it sets bad.
type scanner struct {
	text []byte
	at   int
	bad  bool
}

// stamp reads a date and its clock in any of the notations below.
func (s *scanner) stamp(written time.Time) (time.Time, bool) {
	begin := s.at
	for _, notation := range []func(*scanner, time.Time) (time.Time, bool){
		(*scanner).iso, (*scanner).numeric, (*scanner).named, (*scanner).epoch,
	} {
		s.at, s.bad = begin, false
		if t, ok := notation(s, written); ok && s.isBoundary() {
			return t, true
		}
	}
	s.at, s.bad = begin, true
	return time.Time{}, false
}

// isBoundary reports whether the text ends here, or goes on with something that cannot belong to a time.
func (s *scanner) isBoundary() bool {
	return s.at == len(s.text) || bytes.IndexByte([]byte(" \t|],;:\"'>)}"), s.text[s.at]) >= 0
}

// number reads a number with at least `least` and at most `most` digits.
func (s *scanner) number(least, most int) (value int) {
	begin := s.at
	for s.at < len(s.text) && s.at-begin < most && digit(s.text[s.at]) {
		value = value*10 + int(s.text[s.at]-'0')
		s.at++
	}
	if s.at-begin < least {
		s.bad = true
	}
	return value
}

// expect reads one byte, which must be one of the bytes of its parameter.
func (s *scanner) expect(of string) {
	if !s.has(of) {
		s.bad = true
	}
}

func (s *scanner) has(of string) bool {
	if s.at == len(s.text) {
		return false
	}
	for i := range len(of) {
		if s.text[s.at] == of[i] {
			s.at++
			return true
		}
	}
	return false
}

// hasWord reads a text, if it is next.
func (s *scanner) hasWord(text string) bool {
	if !bytes.HasPrefix(s.text[s.at:], []byte(text)) {
		return false
	}
	s.at += len(text)
	return true
}

// clock reads 15:04:05.000000. The fraction may follow a point, a comma or a colon, or be missing.
func (s *scanner) clock(hourDigits int) (hour, minute, second, nanoseconds int) {
	hour = s.number(hourDigits, 2)
	s.expect(":")
	minute = s.number(2, 2)
	s.expect(":")
	second = s.number(2, 2)
	if s.at+1 < len(s.text) && digit(s.text[s.at+1]) && s.has(".,:") {
		begin := s.at
		nanoseconds = s.number(1, 9)
		for n := s.at - begin; n < 9; n++ {
			nanoseconds *= 10
		}
		for s.at < len(s.text) && digit(s.text[s.at]) {
			s.at++
		}
	}
	return hour, minute, second, nanoseconds
}

// date returns the time with these numbers, or false if they are not a valid date or the scanner's
// field bad is set. Zero times of other programs (1601, 0001) are not valid.
func (s *scanner) date(year, month, day, hour, minute, second, nanoseconds int, zone *time.Location) (time.Time, bool) {
	if s.bad || year < 1971 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	if time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanoseconds, zone), true
}

// yearless returns the time with these numbers in the latest year in which it is not later than
// `written` plus tolerance.
func (s *scanner) yearless(month, day, hour, minute, second, nanoseconds int, written time.Time) (time.Time, bool) {
	latest := written.Add(tolerance)
	for year := latest.Year(); year > latest.Year()-5; year-- { // 29 February is in one of four years
		t, ok := s.date(year, month, day, hour, minute, second, nanoseconds, written.Location())
		if ok && !t.After(latest) {
			return t, true
		}
	}
	return time.Time{}, false
}

// klog reads I1120 14:29:59.123456. This format has neither year nor zone.
func (s *scanner) klog(written time.Time) (time.Time, bool) {
	s.expect("IWEFD")
	month, day := s.number(2, 2), s.number(2, 2)
	s.expect(" ")
	hour, minute, second, nanoseconds := s.clock(2)
	return s.yearless(month, day, hour, minute, second, nanoseconds, written)
}

// iso reads 2026-11-20T14:29:59.123Z and similar forms: with slashes, as Go's package log writes it, with a
// space, a comma or a tab in place of the T, with more or fewer digits, with an offset, or without a zone,
// which means local time.
func (s *scanner) iso(written time.Time) (time.Time, bool) {
	year := s.number(4, 4)
	separator := "-"
	if s.at < len(s.text) && s.text[s.at] == '/' {
		separator = "/"
	}
	s.expect(separator)
	month := s.number(2, 2)
	s.expect(separator)
	day := s.number(2, 2)
	_ = s.has(",")
	s.expect("T \t")
	hour, minute, second, nanoseconds := s.clock(2)
	return s.date(year, month, day, hour, minute, second, nanoseconds, s.zone(written.Location()))
}

func (s *scanner) zone(local *time.Location) *time.Location {
	begin := s.at
	if s.has("Z") || s.hasWord(" UTC") || s.hasWord(" GMT") {
		return time.UTC
	}
	_ = s.has(" ") // .NET's format K writes no space before the offset; Go's default format writes one
	sign := 1
	switch {
	case s.has("-"):
		sign = -1
	case !s.has("+"):
		s.at = begin
		return local
	}
	hours := s.number(2, 2)
	s.has(":")
	minutes := s.number(2, 2)
	if s.bad || hours > 14 || minutes > 59 || !s.isBoundary() { // not a zone, but a text that begins like one
		s.at, s.bad = begin, false
		return local
	}
	_ = s.hasWord(" UTC") // Go's default format: +0000 UTC
	return time.FixedZone("", sign*(hours*60+minutes)*60)
}

// numeric reads 11/20/2026 2:29:59 PM, the default format of .NET and PowerShell, and 20.11.2026 14:29:59.
func (s *scanner) numeric(written time.Time) (time.Time, bool) {
	month := s.number(1, 2)
	dotted := s.at < len(s.text) && s.text[s.at] == '.'
	s.expect("/.")
	day := s.number(1, 2)
	s.expect("/.")
	year := s.number(4, 4)
	_ = s.has(",")
	s.expect(" \t")
	hour, minute, second, nanoseconds := s.clock(1)
	if rest := s.text[s.at:]; len(rest) > 2 && rest[0] == ' ' && (rest[2] == 'M' || rest[2] == 'm') {
		s.at++
		switch {
		case s.has("Pp") && hour < 12:
			hour += 12
		case s.has("Aa") && hour == 12:
			hour = 0
		}
		s.expect("Mm")
	}
	if dotted || month > 12 && day <= 12 { // day before month, as elsewhere in the world
		month, day = day, month
	}
	return s.date(year, month, day, hour, minute, second, nanoseconds, s.zone(written.Location()))
}

// named reads Nov 20 14:29:59, the format of syslog, and Fri Nov 20 14:29:59 2026, that of C.
func (s *scanner) named(written time.Time) (time.Time, bool) {
	for _, day := range []string{"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "} {
		if s.hasWord(day) {
			break
		}
	}
	month := s.month()
	s.expect(" ")
	_ = s.has(" ")
	day := s.number(1, 2)
	s.expect(" ")
	hour, minute, second, nanoseconds := s.clock(2)
	after := s.at
	if s.has(" ") {
		year := s.number(4, 4)
		if t, ok := s.date(year, month, day, hour, minute, second, nanoseconds, written.Location()); ok && s.isBoundary() {
			return t, true
		}
		s.at, s.bad = after, false
	}
	return s.yearless(month, day, hour, minute, second, nanoseconds, written)
}

// month reads the English name of a month.
func (s *scanner) month() int {
	for i, name := range []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"} {
		if s.hasWord(name) {
			return i + 1
		}
	}
	s.bad = true
	return 0
}

// access reads 20/Nov/2026:14:29:59 +0000, the format of NCSA.
func (s *scanner) access(written time.Time) (time.Time, bool) {
	day := s.number(2, 2)
	s.expect("/")
	month := s.month()
	s.expect("/")
	year := s.number(4, 4)
	s.expect(":")
	hour, minute, second, nanoseconds := s.clock(2)
	return s.date(year, month, day, hour, minute, second, nanoseconds, s.zone(written.Location()))
}

// epoch reads the seconds since 1970, such as 1763648999.123 or 1.763648999123e+09, or the milliseconds,
// microseconds or nanoseconds.
func (s *scanner) epoch(time.Time) (time.Time, bool) {
	begin := s.at
	for s.at < len(s.text) && (digit(s.text[s.at]) || s.text[s.at] == '.') {
		s.at++
	}
	if s.hasWord("e+") {
		for s.at < len(s.text) && digit(s.text[s.at]) {
			s.at++
		}
		value, err := strconv.ParseFloat(string(s.text[begin:s.at]), 64)
		return time.UnixMicro(int64(value * 1e6)).UTC(), err == nil && value >= earliestEpoch && value < latestEpoch
	}
	whole, fraction, _ := bytes.Cut(s.text[begin:s.at], []byte("."))
	units := map[int]time.Duration{10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond}
	unit, ok := units[len(whole)]
	value, err := strconv.ParseInt(string(whole), 10, 64)
	if !ok || err != nil {
		return time.Time{}, false
	}
	perSecond := int64(time.Second / unit)
	part := 0.0
	if len(fraction) > 0 {
		if part, err = strconv.ParseFloat("0."+string(fraction), 64); err != nil {
			return time.Time{}, false
		}
	}
	seconds := value / perSecond
	t := time.Unix(seconds, value%perSecond*int64(unit)).Add(time.Duration(part*float64(unit) + 0.5)).UTC()
	return t, seconds >= earliestEpoch && seconds < latestEpoch
}

// The range of seconds since 1970 that are a time of a log: from the year 2001 to 2128.
const (
	earliestEpoch = 1_000_000_000
	latestEpoch   = 5_000_000_000
)
