package settings

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// HostsEntry is a name with its address.
type HostsEntry struct {
	Name    string
	Address string // in a change, an empty address removes the name
}

// hostsFile is the list of lines of a hosts file. It keeps lines that it does
// not understand.
type hostsFile struct {
	bom   bool
	lines []hostsLine
	tail  string // NUL and Ctrl-Z characters at the end, which a line must not follow
}

// hostsLine is one line, with its line ending.
type hostsLine struct {
	text string
	end  string // "\r\n", "\n", or nothing at the end of the file
}

// maxNames is the number of names of one line that Windows reads: a host name and eight aliases (Microsoft's KB 2717022,
// kyma-project/cli#93, goodhosts/hostsfile#10).
const maxNames = 9

// parseHosts accepts every file except a UTF-16 file, which Windows ignores. A file may be in any code page.
func parseHosts(data []byte) (hostsFile, error) {
	if err := windowstext.Refuse(data, "Windows", windowstext.MarkedUTF8); err != nil {
		return hostsFile{}, invalidf("%s, %v", HostsPath, err)
	}
	all, hasBOM := strings.CutPrefix(string(data), windowstext.MarkedUTF8.Mark())
	text := strings.TrimRight(all, "\x00\x1a")
	file := hostsFile{bom: hasBOM, tail: all[len(text):]}
	for line := range strings.Lines(text) {
		body, found := strings.CutSuffix(line, "\n")
		end := ""
		if found {
			end = "\n"
			if b, carriage := strings.CutSuffix(body, "\r"); carriage {
				body, end = b, "\r\n"
			}
		}
		file.lines = append(file.lines, hostsLine{body, end})
	}
	return file, nil
}

func (f *hostsFile) bytes() []byte {
	var out strings.Builder
	if f.bom {
		out.WriteString(windowstext.MarkedUTF8.Mark())
	}
	for _, line := range f.lines {
		out.WriteString(line.text + line.end)
	}
	out.WriteString(f.tail)
	return []byte(out.String())
}

// entries returns all names, in the file's order.
func (f *hostsFile) entries() []HostsEntry {
	var all []HostsEntry
	for _, line := range f.lines {
		address, names := line.parse()
		for _, name := range names {
			all = append(all, HostsEntry{name.text, address.text})
		}
	}
	return all
}

func (f *hostsFile) change(changes []HostsEntry) {
	for _, change := range changes {
		if change.Address == "" {
			f.remove(change.Name)
		} else {
			f.set(change.Name, change.Address)
		}
	}
}

// set makes a name resolve to one address and to no other address. If a line maps the name to this
// address already, set keeps that line. If not, set changes the address of a line that has only
// this name. If no line has only this name, set adds a line.
func (f *hostsFile) set(name, address string) {
	keep := slices.IndexFunc(f.lines, func(line hostsLine) bool {
		at, names := line.parse()
		return sameAddress(at.text, address) && indexName(names, name) >= 0
	})
	if keep < 0 {
		keep = slices.IndexFunc(f.lines, func(line hostsLine) bool { return line.hasOnly(name) })
		if keep >= 0 {
			f.lines[keep] = f.lines[keep].withAddress(address)
		}
	}
	f.drop(name, keep)
	if keep < 0 {
		f.add(name, address)
	}
}

// remove deletes a name from the file.
func (f *hostsFile) remove(name string) { f.drop(name, -1) }

// drop removes a name from all lines; only the line with the index `except`
// keeps the name, once. A line that loses its last name is removed, unless it
// has a comment.
func (f *hostsFile) drop(name string, except int) {
	var kept []hostsLine
	for i, line := range f.lines {
		allowed := 0
		if i == except {
			allowed = 1
		}
		if line, keep := line.without(name, allowed); keep {
			kept = append(kept, line)
		}
	}
	f.lines = kept
}

func (f *hostsFile) add(name, address string) {
	end := "\r\n"
	if len(f.lines) > 0 && f.lines[0].end != "" {
		end = f.lines[0].end
	}
	if last := len(f.lines) - 1; last >= 0 && f.lines[last].end == "" {
		f.lines[last].end = end
	}
	f.lines, f.tail = append(f.lines, hostsLine{address + "\t" + name, end}), ""
}

// token is a word and its position in its line.
type token struct {
	text       string
	start, end int
}

// parse splits a line into address and names, without the names that Windows does not read. A line that is not an
// entry has no names.
func (l hostsLine) parse() (address token, names []token) {
	text, _, _ := strings.Cut(l.text, "#")
	words := tokens(text)
	if len(words) < 2 || !isAddress(words[0].text) {
		return token{}, nil
	}
	return words[0], words[1:min(len(words), 1+maxNames)]
}

// unread returns the rest of a line that has names: its comment, and the names before it that Windows does not read. In
// the rest, the names are part of the comment, so that Windows does not read them either if the line loses others.
func (l hostsLine) unread() (begin int, rest string) {
	_, names := l.parse()
	end := names[len(names)-1].end
	rest = strings.TrimLeft(l.text[end:], " \t\r\v\f")
	begin = len(l.text) - len(rest)
	if rest != "" && rest[0] != '#' {
		rest = "# " + rest
	}
	return begin, rest
}

func (l hostsLine) hasOnly(name string) bool {
	_, names := l.parse()
	return len(names) > 0 && !slices.ContainsFunc(names, func(t token) bool { return !strings.EqualFold(t.text, name) })
}

func (l hostsLine) withAddress(address string) hostsLine {
	old, _ := l.parse()
	l.text = l.text[:old.start] + address + l.text[old.end:]
	return l
}

// without removes all occurrences of a name after the first `allowed` ones, each with the space
// before it. The result `keep` reports whether the line should remain.
func (l hostsLine) without(name string, allowed int) (line hostsLine, keep bool) {
	address, names := l.parse()
	var text strings.Builder
	at, previous, left, removed := 0, address.end, 0, false
	for _, n := range names {
		if strings.EqualFold(n.text, name) {
			if allowed--; allowed < 0 {
				text.WriteString(l.text[at:previous])
				at, removed = n.end, true
				previous = n.end
				continue
			}
		}
		previous = n.end
		left++
	}
	if !removed {
		return l, true
	}
	begin, rest := l.unread()
	if left == 0 {
		l.text = rest
		return l, l.text != ""
	}
	text.WriteString(l.text[at:begin] + rest)
	l.text = text.String()
	return l, true
}

func tokens(text string) []token {
	var all []token
	start := -1
	for i := 0; i <= len(text); i++ {
		space := i == len(text) || strings.IndexByte(" \t\r\v\f", text[i]) >= 0
		switch {
		case !space && start < 0:
			start = i
		case space && start >= 0:
			all = append(all, token{text[start:i], start, i})
			start = -1
		}
	}
	return all
}

func indexName(names []token, name string) int {
	return slices.IndexFunc(names, func(t token) bool { return strings.EqualFold(t.text, name) })
}

// isAddress reports whether a text is an IP address. It also accepts addresses
// that Windows reads and netip refuses, like 010.0.0.1.
func isAddress(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	return strings.Trim(text, "0123456789.") == "" && strings.Contains(text, ".")
}

func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return strings.EqualFold(a, b)
	}
	return x == y
}
