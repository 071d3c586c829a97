package logline

import "time"

// searched is how many bytes at the beginning of a line are searched for its time: a logfmt or
// JSON line may have a few fields before the time.
const searched = 160

// Time returns when a line was logged, or false if it finds no time in the line. If the time has no
// year or no zone, Time takes the missing part from its parameter `now`, the present time in the
// zone of the machine that wrote the line.
func Time(line []byte, now time.Time) (time.Time, bool) {
	s := scanner{text: line[:min(len(line), searched)]}
	if t, ok := s.klog(now); ok {
		return t, true
	}
	for at := range len(s.text) {
		if !digit(s.text[at]) || at > 0 && (digit(s.text[at-1]) || s.text[at-1] == '-') {
			continue
		}
		if s.begin(at); s.text[min(at+4, len(s.text)-1)] == '-' {
			if t, ok := s.iso(now); ok {
				return t, true
			}
		}
		if s.begin(at); s.text[min(at+1, len(s.text)-1)] == '/' || s.text[min(at+2, len(s.text)-1)] == '/' {
			if t, ok := s.american(now); ok {
				return t, true
			}
		}
		if s.begin(at); s.text[max(at-1, 0)] == ':' {
			if t, ok := s.epoch(); ok {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// scanner reads the numbers and separators of a time. If an expected number or separator is
// missing, it sets bad.
type scanner struct {
	text []byte
	at   int
	bad  bool
}

func (s *scanner) begin(at int) { s.at, s.bad = at, false }

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

// clock reads 15:04:05.000000. The fraction may follow a point or a comma, or be missing.
func (s *scanner) clock(hourDigits int) (hour, minute, second, nanoseconds int) {
	hour = s.number(hourDigits, 2)
	s.expect(":")
	minute = s.number(2, 2)
	s.expect(":")
	second = s.number(2, 2)
	if s.at+1 < len(s.text) && digit(s.text[s.at+1]) && s.has(".,") {
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
// field bad is set.
func (s *scanner) date(year, month, day, hour, minute, second, nanoseconds int, zone *time.Location) (time.Time, bool) {
	if s.bad || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanoseconds, zone), true
}

// klog reads I1120 14:29:59.123456. This format has neither year nor zone: klog uses the zone of
// its parameter `now`, and the year that brings the time nearest to `now`.
func (s *scanner) klog(now time.Time) (time.Time, bool) {
	s.expect("IWEF")
	month, day := s.number(2, 2), s.number(2, 2)
	s.expect(" ")
	hour, minute, second, nanoseconds := s.clock(2)
	t, ok := s.date(now.Year(), month, day, hour, minute, second, nanoseconds, now.Location())
	const halfYear = 183 * 24 * time.Hour
	switch {
	case !ok:
		return t, false
	case t.Sub(now) > halfYear:
		return t.AddDate(-1, 0, 0), true
	case now.Sub(t) > halfYear:
		return t.AddDate(1, 0, 0), true
	}
	return t, true
}

// iso reads 2026-11-20T14:29:59.123Z and similar forms: with a space in place of the T, with more
// or fewer digits, with an offset, or without a zone, which means local time.
func (s *scanner) iso(now time.Time) (time.Time, bool) {
	year := s.number(4, 4)
	s.expect("-")
	month := s.number(2, 2)
	s.expect("-")
	day := s.number(2, 2)
	s.expect("T ")
	hour, minute, second, nanoseconds := s.clock(2)
	return s.date(year, month, day, hour, minute, second, nanoseconds, s.zone(now.Location()))
}

func (s *scanner) zone(local *time.Location) *time.Location {
	begin := s.at
	if s.has("Z") {
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
	if s.bad || hours > 14 || minutes > 59 { // not a zone, but a text that begins like one
		s.at, s.bad = begin, false
		return local
	}
	return time.FixedZone("", sign*(hours*60+minutes)*60)
}

// american reads 11/20/2026 2:29:59 PM, the default format of .NET and
// PowerShell.
func (s *scanner) american(now time.Time) (time.Time, bool) {
	month := s.number(1, 2)
	s.expect("/")
	day := s.number(1, 2)
	s.expect("/")
	year := s.number(4, 4)
	_ = s.has(",")
	s.expect(" ")
	hour, minute, second, nanoseconds := s.clock(1)
	if s.has(" ") {
		switch {
		case s.has("P") && hour < 12:
			hour += 12
		case s.has("A") && hour == 12:
			hour = 0
		}
	}
	if month > 12 && day <= 12 { // day before month, as elsewhere in the world
		month, day = day, month
	}
	return s.date(year, month, day, hour, minute, second, nanoseconds, now.Location())
}

// epoch reads the "ts":1763648999.123 of structured logs, in seconds as zap
// writes them or in milliseconds as Kubernetes does.
func (s *scanner) epoch() (time.Time, bool) {
	if s.at < 5 || string(s.text[s.at-5:s.at]) != `"ts":` {
		return time.Time{}, false
	}
	begin := s.at
	whole := s.number(10, 13)
	digits := s.at - begin
	if s.bad || digits != 10 && digits != 13 {
		return time.Time{}, false
	}
	unit := time.Second
	if digits == 13 {
		unit = time.Millisecond
	}
	fraction, scale := 0, 1
	if s.has(".") {
		begin := s.at
		fraction = s.number(0, 9)
		for range s.at - begin {
			scale *= 10
		}
	}
	perSecond := int64(time.Second / unit)
	nanoseconds := int64(whole)%perSecond*int64(unit) + int64(fraction)*int64(unit)/int64(scale)
	return time.Unix(int64(whole)/perSecond, nanoseconds).UTC(), true
}
