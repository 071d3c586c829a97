package redact

import "bytes"

// farBack is how many bytes before an option are searched for the name of its program.
const farBack = 400

// commandOption redacts the value of an option that is secret only for some programs, such as -p of
// docker login.
func (s *scan) commandOption(begin, end int, b behind) int {
	name := s.text[begin:end]
	option := name[0] == '-'
	switch {
	case !option && (len(name) != len("rp") || !isOneOf(name, "rp", "RP") || !s.slashOption(begin)):
		return 0
	case isOneOf(name, "rp", "RP", "-p", "-P", "-a"):
		return s.shortOption(begin, end, name, b)
	case option && len(name) > 2 && (name[1] == 'p' || name[1] == 'P') && s.glues(begin, name[1]):
		s.add(span{from: begin, start: begin + 2, end: s.gluedEnd(begin + 2)})
		return s.gluedEnd(begin + 2)
	case option && len(name) > 2 && name[1] == 'u' && s.text[b.at] == ':' && s.runs(begin, "curl", ""):
		return s.redactText(begin, b.at+1, b.at+1, password)
	case isOneOf(name, "--from-literal"):
		return s.fromLiteral(begin, b)
	case isOneOf(name, "-u", "--user", "--creds", "--proxy-user"),
		isOneOf(name, "-U") && s.runs(begin, "curl", ""), len(name) < 8 && name[len(name)-1] == 'u' &&
			s.runs(begin, "curl", ""):
		return s.userFlag(begin, b)
	}
	return 0
}

// shortOption redacts the value after -p or a similar option, if the value is a password for the
// program before the option. It returns the end of the value, or 0 if it redacts nothing.
func (s *scan) shortOption(begin, end int, name []byte, b behind) int {
	if !s.isPassword(begin, name) {
		return 0
	}
	start := b.at
	switch c := s.text[b.at]; {
	case b.quoted && b.spaces == 0 && c != ',' && isQuote(s.text[end]): // -p'…'
		start = end
	case c == ',' || c == '=' || c == ':':
		start = b.at + 1
	case b.spaces == 0:
		return 0
	}
	for start < len(s.text) && s.text[start] == ' ' {
		start++
	}
	if start == len(s.text) || s.text[start] == '-' {
		return 0
	}
	return s.redactText(begin, start, start, password)
}

// isPassword reports whether the value of a short option is a password. This depends on the
// program before the option.
func (s *scan) isPassword(begin int, name []byte) bool {
	switch string(name) {
	case "-p":
		for _, program := range []string{"docker", "nerdctl", "podman", "buildah", "skopeo", "helm", "oras",
			"crane", "az", "regctl"} {
			if s.runs(begin, program, "login") {
				return true
			}
		}
		for _, program := range []string{"psexec", "psexec64", "sshpass", "mongo", "mongosh", "mongodump", "winrs"} {
			if s.runs(begin, program, "") {
				return true
			}
		}
	case "-P":
		return s.runs(begin, "sqlcmd", "") || s.runs(begin, "bcp", "")
	case "-a":
		return s.runs(begin, "redis-cli", "")
	case "rp", "RP":
		return s.runs(begin, "schtasks", "")
	}
	return false
}

// runs reports whether the name of a program precedes a place in the line. If command is not empty,
// this command must follow the program, before that place.
func (s *scan) runs(begin int, program, command string) bool {
	before := s.text[max(0, begin-farBack):begin]
	at := wordIn(before, program)
	return at >= 0 && (command == "" || wordIn(before[at:], command) >= 0)
}

// wordIn returns the position of a word in a text, or -1.
func wordIn(text []byte, word string) int {
	for from := 0; from+len(word) <= len(text); from++ {
		if lower(text[from]) != word[0] || !bytes.EqualFold(text[from:from+len(word)], []byte(word)) {
			continue
		}
		end := from + len(word)
		if (from == 0 || !isToken(text[from-1])) && (end == len(text) || !isToken(text[end])) {
			return from
		}
	}
	return -1
}

// glues reports whether a program accepts -pPASSWORD as one word.
func (s *scan) glues(begin int, letter byte) bool {
	if letter == 'P' {
		return s.runs(begin, "bcp", "") || s.runs(begin, "sqlcmd", "")
	}
	return s.runs(begin, "mysql", "") || s.runs(begin, "mysqldump", "") || s.runs(begin, "mysqladmin", "") ||
		s.runs(begin, "sshpass", "")
}

func (s *scan) gluedEnd(from int) int {
	end, _ := s.valueEnd(from, terminator{by: endsPlain})
	return end
}

// fromLiteral redacts the value of kubectl's --from-literal=name=value.
func (s *scan) fromLiteral(begin int, b behind) int {
	equals := bytes.IndexByte(s.text[min(len(s.text), b.at+1):], '=')
	if equals < 0 || isOneOf(s.text[b.at+1:b.at+1+equals], "username", "user") {
		return 0
	}
	start := b.at + 1 + equals + 1
	if start == len(s.text) {
		return 0
	}
	return s.redactText(begin, start, start, password)
}

// userFlag redacts the password of curl's -u user:password.
func (s *scan) userFlag(begin int, b behind) int {
	at := b.at
	switch c := s.text[at]; {
	case c == '=', c == ',' && b.quoted:
		at = s.pastSpaces(at + 1)
	case b.spaces == 0:
		return 0
	}
	until := terminator{by: endsPlain}
	if quoted, slashes := s.quote(at); quoted != 0 {
		until = terminator{quote: quoted, slashes: slashes}
		at += slashes + 1
	}
	end, closed := s.valueEnd(at, until)
	colon := bytes.IndexByte(s.text[at:end], ':')
	if colon < 0 || colon == 0 && !s.runs(begin, "curl", "") || colon+1 == end-at || bytes.IndexByte(s.text[at:at+colon], '%') >= 0 ||
		harmless(s.text[at+colon+1:end], password) || end > at+colon+1 &&
		(s.text[at+colon+1] == '\\' || s.text[at+colon+1] == '/') {
		return 0
	}
	s.add(span{from: begin, start: at + colon + 1, end: end, open: !closed, until: until})
	return end
}

// commandWord handles commands with arguments that are secret because of their position.
func (s *scan) commandWord(at, end int) int {
	word := s.text[at:end]
	switch len(word) {
	case len("BY"):
		if string(word) == "BY" && bytes.HasSuffix(s.text[:at], []byte("IDENTIFIED ")) {
			return s.bareLiteral(at, end)
		}
	case len("use"):
		switch {
		case string(word) == "PSK":
			return s.bareLiteral(at, end)
		case string(word) == "use" && s.netBefore(at):
			return s.netUse(end, 0)
		}
	case len("PASSWORD"):
		switch string(word) {
		case "PASSWORD":
			return s.bareLiteral(at, end)
		case "chpasswd":
			s.changesPasswords(at)
		}
	case len("user"):
		if string(word) == "user" && s.netBefore(at) {
			return s.netUse(end, 1)
		}
	case len("stdin"):
		if string(word) == "stdin" && bytes.HasSuffix(s.text[:at], []byte("--password-")) {
			s.piped(at, "echo ")
		}
	case len("SecureString"):
		if bytes.EqualFold(word, []byte("SecureString")) && bytes.HasSuffix(s.text[:at], []byte("ConvertTo-")) {
			return s.secureString(at, end)
		}
		if bytes.EqualFold(word, []byte("PSCredential")) {
			return s.credential(at, end)
		}
	case len("NetworkCredential"):
		if bytes.EqualFold(word, []byte("NetworkCredential")) {
			return s.credential(at, end)
		}
	}
	return 0
}

func (s *scan) netBefore(at int) bool {
	before := bytes.TrimRight(s.text[:at], " ")
	before = bytes.TrimSuffix(before, []byte(".exe"))
	n := len(before)
	return len(before) < at && n >= 3 && bytes.EqualFold(before[n-3:], []byte("net")) &&
		(n == 3 || !isToken(before[n-4]))
}

// netUse redacts the password in a net use or net user command: the first argument that is
// neither an option, nor a drive, nor a share. Before the password, it skips the given number of
// names.
func (s *scan) netUse(at, names int) int {
	for next := at; next < len(s.text); {
		for next < len(s.text) && s.text[next] == ' ' {
			next++
		}
		start, end, after := s.argument(next)
		word := s.text[start:end]
		switch {
		case len(word) == 0:
			return 0
		case word[0] == '`':
			return 0
		case word[0] == '/' || word[0] == '\\' || word[0] == '*' || len(word) == 2 && word[1] == ':':
		case names > 0:
			names--
		case harmless(word, password):
			return 0
		default:
			s.add(span{from: at, start: start, end: end, open: end == len(s.text), until: terminator{by: endsPlain}})
			return end
		}
		next = after
	}
	return 0
}

// argument returns the position of a command's next word or quoted text, and of the text after it.
func (s *scan) argument(at int) (begin, end, next int) {
	if quoted, slashes := s.quote(at); quoted != 0 {
		begin = at + slashes + 1
		end, closed := s.valueEnd(begin, terminator{quote: quoted, slashes: slashes})
		if closed {
			return begin, end, min(len(s.text), end+slashes+1)
		}
	}
	end = at
	for end < len(s.text) && !isSpace(s.text[end]) && !isQuote(s.text[end]) {
		end++
	}
	return at, end, end
}

// secureString redacts the text that ConvertTo-SecureString converts to a secret: its argument, or
// the text piped into it.
func (s *scan) secureString(at, end int) int {
	begin := at
	for at = end; at < len(s.text); {
		for at < len(s.text) && s.text[at] == ' ' {
			at++
		}
		stop := at
		for stop < len(s.text) && !endsWord(s.text[stop]) && s.text[stop] != ')' && s.text[stop] != '|' &&
			s.text[stop] != ';' {
			stop++
		}
		quoted, slashes := s.quote(at)
		switch {
		case quoted != 0:
			start, until := at+slashes+1, terminator{quote: quoted, slashes: slashes}
			end, closed := s.valueEnd(start, until)
			if start < end && s.text[start] != '$' {
				s.add(span{from: begin, start: start, end: end, open: !closed, until: until})
			}
			return end
		case stop == at:
			s.piped(begin, "")
			return 0
		case s.text[at] == '-':
		case s.text[at] == '$' || s.text[at] == '(':
			return 0
		default:
			s.add(span{from: begin, start: at, end: stop, open: stop == len(s.text), until: terminator{by: endsWord}})
			return stop
		}
		at = stop
	}
	s.piped(begin, "")
	return 0
}

// piped redacts the text that is piped into the command at a position. If the parameter `by`, such
// as "echo ", is not empty, the text is redacted only if it follows that parameter's text.
func (s *scan) piped(at int, by string) {
	bar := bytes.LastIndexByte(s.text[:at], '|')
	if bar < 0 {
		return
	}
	text := bytes.TrimRight(s.text[:bar], " ")
	var start int
	end := len(text)
	if end > 1 && isQuote(text[end-1]) {
		end--
		start = bytes.LastIndexByte(text[:end], text[end]) + 1
	} else {
		start = bytes.LastIndexByte(text, ' ') + 1
	}
	if start >= end || by != "" && !bytes.HasSuffix(bytes.TrimRight(text[:start], `'"\`), []byte(by)) ||
		text[start] == '$' {
		return
	}
	if n := len(s.spans); n == 0 || s.spans[n-1].end <= start {
		s.add(span{from: start, start: start, end: end})
	}
}

// credential redacts the second text of NetworkCredential('user', 'password').
func (s *scan) credential(at, end int) int {
	open := bytes.IndexByte(s.text[end:min(len(s.text), end+16)], '(')
	if open < 0 {
		return 0
	}
	place := end + open + 1
	for n := range 2 {
		for place < len(s.text) && (s.text[place] == ' ' || s.text[place] == ',') {
			place++
		}
		quoted, slashes := s.quote(place)
		if quoted == 0 {
			return 0
		}
		start, until := place+slashes+1, terminator{quote: quoted, slashes: slashes}
		stop, closed := s.valueEnd(start, until)
		if n == 1 {
			if start < stop {
				s.add(span{from: at, start: start, end: stop, open: !closed, until: until})
			}
			return stop
		}
		place = min(len(s.text), stop+slashes+1)
	}
	return 0
}
