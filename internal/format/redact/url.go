package redact

import "bytes"

// hooks returns the beginnings of webhook addresses. The path behind each of them is a secret.
func hooks() []string {
	return []string{"://hooks.slack.com/services/", "://hooks.slack.com/workflows/", "://hooks.slack.com/triggers/",
		"discord.com/api/webhooks/", "://discordapp.com/api/webhooks/", "discord.com/api/v10/webhooks/",
		".webhook.office.com/webhookb2/", "://outlook.office.com/webhook/", "://api.telegram.org/bot",
		"://hooks.zapier.com/hooks/catch/", "://open.feishu.cn/open-apis/bot/v2/hook/", "://maker.ifttt.com/trigger/x/with/key/"}
}

// url redacts the secret parts of the URL whose "://" is at a position, and returns where to
// continue.
func (s *scan) url(at int) int {
	if next := s.hook(at); next > 0 {
		return next
	}
	return s.userinfo(at)
}

// hook redacts the path of a webhook and returns its end; 0 if the URL is not a known webhook.
func (s *scan) hook(at int) int {
	rest := s.text[at:min(len(s.text), at+nearby)]
	for _, hook := range hooks() {
		n := bytes.Index(rest, []byte(hook))
		if n < 0 || n > 0 && (hook[0] == ':' || n > len("://") && bytes.ContainsAny(rest[len("://"):n], "/ \"")) {
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

// userinfo redacts the password of scheme://user:password@host, and a user that
// is a token. A password may contain / and @; a text that looks like a port
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

// plainUserinfo redacts the password in a URL's user:password@ if the password has no slash or
// other character that ends this part of a URL. The user may contain an @. plainUserinfo returns
// the position of the @ behind the password, or 0 if it redacts nothing.
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

// signAfter returns the position of the @ that ends a password, or 0. This is the last @ before
// the path. A slash before the first @ belongs to the password.
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
