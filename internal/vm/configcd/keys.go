package configcd

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	maxKeys    = 100
	maxKeyLine = 16 << 10 // bytes; a key of 16,384 bits has 3 KB
)

// authorizedKeys returns the content of an authorized_keys file. Each line is parsed, and
// written anew from the key and its comment: nothing else of a line reaches the guest.
func authorizedKeys(lines []string) ([]byte, error) {
	switch {
	case len(lines) == 0:
		return nil, errors.New("no public key is given, so no logon over SSH would be possible; give at least one")
	case len(lines) > maxKeys:
		return nil, fmt.Errorf("%d public keys; at most %d are possible", len(lines), maxKeys)
	}
	var out bytes.Buffer
	var problems []error
	for n, line := range lines {
		key, err := authorizedKey(line)
		if err != nil {
			problems = append(problems, fmt.Errorf("public key %d: %w", n+1, err))
		}
		out.WriteString(key)
	}
	return out.Bytes(), errors.Join(problems...)
}

func authorizedKey(line string) (string, error) {
	line = strings.TrimSpace(line)
	if len(line) > maxKeyLine || strings.ContainsAny(line, "\r\n\x00") {
		return "", errors.New("it is not one line; write one line of a .pub file")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return "", errors.New("it is no public key of OpenSSH; write the line of the .pub file")
	case len(options) > 0:
		return "", errors.New("it has options before the key; write the key and its comment alone")
	}
	text := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
	if comment = printable(comment); comment != "" {
		text += " " + comment
	}
	return text + "\n", nil
}

// printable returns the comment of a key in printable ASCII.
func printable(comment string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.TrimSpace(comment))
}
