package redact

import "bytes"

// leastDumped is the minimum number of bytes in a line without a frame around its text that make it a line of a dump.
const leastDumped = 8

// dump redacts a line of a hexadecimal dump: its bytes, and the same bytes as text. No scan of words finds a secret
// that is spread over lines of 16 bytes. The line begins with an offset, from `at` to `end`. dump returns the end of the
// line, or 0 if it is no line of a dump.
//
// These forms are known: encoding/hex.Dump of Go, with which client-go logs bodies in protobuf from --v=8 on
// (https://pkg.go.dev/encoding/hex#Dump, k8s.io/client-go/rest/request.go), hexdump -C, xxd, od, tcpdump -X, certutil and
// Format-Hex of PowerShell.
func (s *scan) dump(at, end int) int {
	if s.before(at) == '\\' && (s.text[at] == 'n' || s.text[at] == 't') {
		at++ // an escaped line end in front of the offset
	}
	if end == len(s.text) || s.text[end] != ' ' && s.text[end] != ':' || !isOffset(s.text[at:end]) {
		return 0
	}
	start := end
	if s.text[start] == ':' {
		start++
	}
	bytesAt := s.pastSpaces(start)
	count, stop := s.hexBytes(bytesAt)
	if bytesAt == start || count == 0 {
		return 0
	}
	column := s.pastSpaces(stop)
	rest := s.text[column:]
	switch {
	case bytes.HasPrefix(rest, []byte("|")):
		stop = s.frameEnd(column+1, count)
	case bytes.HasPrefix(rest, []byte("[truncated")) && end-at == 8:
	case count < leastDumped || s.text[end-1] != '0' || end-at < 6 && bytesAt < end+2:
		return 0 // numbers of a table
	default:
		stop = s.columnEnd(column, count)
	}
	s.add(span{from: at, start: bytesAt, end: stop})
	return stop
}

// isOffset reports whether a word is the offset of a line of a dump.
func isOffset(word []byte) bool {
	digits := bytes.TrimPrefix(word, []byte("0x"))
	switch len(digits) {
	case 4, 6, 7, 8, 16:
	default:
		return false
	}
	for _, c := range digits {
		if !isHex(lower(c)) {
			return false
		}
	}
	return true
}

func (s *scan) pastSpaces(at int) int {
	for at < len(s.text) && s.text[at] == ' ' {
		at++
	}
	return at
}

// hexBytes returns the number of bytes that are written in hexadecimal digits from a position on, and where they end.
// Bytes have two digits, or four in pairs. A cut byte with one digit counts if "[truncated" follows.
func (s *scan) hexBytes(at int) (count, end int) {
	end = at
	for count < 64 {
		digits := at
		for digits < len(s.text) && isHex(lower(s.text[digits])) {
			digits++
		}
		n := digits - at
		cut := n == 1 && bytes.HasPrefix(s.text[digits:], []byte(" [truncated"))
		if n != 2 && n != 4 && !cut || digits < len(s.text) && isWord(s.text[digits]) {
			return count, end
		}
		count, end = count+max(1, n/2), digits
		if at = s.pastSpaces(digits); at == digits || at > digits+2 {
			return count, end
		}
	}
	return count, end
}

// frameEnd returns the end of the bytes' text, behind the | that closes it. A text of JSON has backslashes before some
// of the characters.
func (s *scan) frameEnd(start, count int) int {
	end := start + count
	if cut := bytes.Index(s.text[start:], []byte(" [truncated")); cut >= 0 && cut <= count {
		return start + cut
	}
	if end < len(s.text) && s.text[end] == '|' {
		return end + 1
	}
	end = start
	for n := 0; n < count && end < len(s.text); n++ {
		if s.text[end] == '\\' {
			end++
		}
		end++
	}
	if end < len(s.text) && s.text[end] == '|' {
		return end + 1
	}
	return min(len(s.text), end)
}

// columnEnd returns the end of a text without a frame, or in a frame of > and <, which has one character for each byte.
func (s *scan) columnEnd(column, count int) int {
	end := min(len(s.text), column+count)
	if column < len(s.text) && s.text[column] == '>' {
		end = min(len(s.text), column+count+2)
	}
	if cut := bytes.Index(s.text[column:end], []byte(`\n`)); cut >= 0 {
		end = column + cut
	}
	return end
}
