package redact

import "bytes"

// hooks returns addresses with a secret path.
func hooks() []string {
	return []string{"://hooks.slack.com/services/", "://discord.com/api/webhooks/", "://discordapp.com/api/webhooks/",
		".webhook.office.com/webhookb2/", "://api.telegram.org/bot"}
}

// url redacts the secret parts of a URL, which continues at "://".
func (s *scan) url(at int) int {
	if next := s.hook(at); next > 0 {
		return next
	}
	return s.userinfo(at)
}

// hook redacts the path of a webhook.
func (s *scan) hook(at int) int {
	rest := s.text[at:min(len(s.text), at+nearby)]
	for _, hook := range hooks() {
		n := bytes.Index(rest, []byte(hook))
		if n < 0 || n > 0 && (hook[0] == ':' || bytes.ContainsAny(rest[len("://"):n], "/ \"")) {
			continue
		}
		start := at + n + len(hook)
		end, closed := s.valueEnd(start, terminator{by: endsURL})
		if end-start < 16 {
			return 0
		}
		s.add(span{from: at, start: start, end: end, open: !closed, until: terminator{by: endsURL}})
		return end
	}
	return 0
}

func endsURL(c byte) bool {
	return isSpace(c) || c == '"' || c == '\'' || c == '<' || c == '>' || c == ',' || c == ')'
}

// userinfo redacts the password of scheme://user:password@host, and the user if
// it is a token. A password may contain / and @; a text that looks like a port
// does not begin a password.
func (s *scan) userinfo(at int) int {
	start := at + len("://")
	if next := s.plainUserinfo(at); next > 0 {
		return next
	}
	colon := start
	for colon < len(s.text) && isUser(s.text[colon]) {
		colon++
	}
	switch {
	case colon == len(s.text):
		return start
	case s.text[colon] == '@':
		if text := s.text[start:colon]; len(text) >= 16 && random(text, 16) && mixedCase(text) {
			s.add(span{from: at, start: start, end: colon})
			return colon
		}
		return start
	case s.text[colon] != ':':
		return start
	}
	port := colon + 1
	for port < len(s.text) && isDigit(s.text[port]) {
		port++
	}
	if port == len(s.text) || s.text[port] != '@' && (port > colon+1 && !isWord(s.text[port]) || s.text[port] == '/') {
		return start
	}
	sign := s.signAfter(colon + 1)
	if sign <= colon+1 || harmless(s.text[colon+1:sign], password) {
		return start
	}
	s.add(span{from: at, start: colon + 1, end: sign})
	return sign
}

// plainUserinfo redacts the password of a URL's user:password@ that contains no slash or other
// character of a path. The user may contain an @.
func (s *scan) plainUserinfo(at int) int {
	colon, sign := -1, -1
	for i := at + len("://"); i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '@':
			sign = i
		case c == ':' && colon < 0:
			colon = i
		case isSpace(c) || c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || c == '<' || c == '>':
			i = len(s.text)
		}
	}
	if sign < 0 || colon < 0 || colon+1 >= sign {
		return 0
	}
	s.add(span{from: at, start: colon + 1, end: sign})
	return sign
}

func isUser(c byte) bool {
	return isToken(c) || c == '.' || c == '%' || c == '+' || c == ';' || c == '\\' || c == '~' || c == '!' || c == '$'
}

func mixedCase(text []byte) bool {
	return bytes.ContainsAny(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
		bytes.ContainsAny(text, "abcdefghijklmnopqrstuvwxyz")
}

// signAfter returns the @ that ends a password: the first, or the last of those
// before the path.
func (s *scan) signAfter(begin int) (sign int) {
	for i := begin; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '@':
			sign = i
		case isSpace(c) || c == '"' || c == '\'' || c == '<' || c == '>':
			return sign
		case sign > 0 && (c == '/' || c == '?' || c == '#' || c == ','):
			return sign
		}
	}
	return sign
}

// tcpAddress redacts the password of user:password@tcp(host:port), the form of
// Go's MySQL driver.
func (s *scan) tcpAddress(at int) int {
	rest := s.text[at+1:]
	if !bytes.HasPrefix(rest, []byte("tcp(")) && !bytes.HasPrefix(rest, []byte("unix(")) {
		return at + 1
	}
	begin := at
	for begin > 0 && !endsURL(s.text[begin-1]) && s.text[begin-1] != '=' {
		begin--
	}
	colon := bytes.IndexByte(s.text[begin:at], ':')
	if colon < 1 || colon+1 == at-begin || bytes.HasPrefix(s.text[begin+colon:], []byte("://")) {
		return at + 1
	}
	if n := len(s.spans); n == 0 || s.spans[n-1].end <= begin+colon {
		s.add(span{from: begin, start: begin + colon + 1, end: at})
	}
	return at + 1
}
