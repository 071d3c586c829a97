package answer

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Password is a password of Windows. No verb of fmt, log or encoding prints it, not even if
// it is a field of another value; only Reveal returns it.
type Password struct {
	text *string // a pointer, since fmt prints a pointer in an inner value as an address
}

const hidden = "[password]"

// NewPassword returns a password with this text. It does not check the text; Check does.
func NewPassword(text string) Password { return Password{text: &text} }

// Reveal returns the text.
func (p Password) Reveal() string {
	if p.text == nil {
		return ""
	}
	return *p.text
}

// String, GoString, Format, MarshalText and MarshalJSON hide the text.
func (p Password) String() string               { return hidden }
func (p Password) GoString() string             { return hidden }
func (p Password) Format(s fmt.State, _ rune)   { _, _ = io.WriteString(s, hidden) }
func (p Password) MarshalText() ([]byte, error) { return []byte(hidden), nil }
func (p Password) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// Lengths of passwords, in characters.
const (
	minPassword       = 8
	maxPassword       = 127
	generatedPassword = 24
)

// classes are the characters of generated passwords, by their class. They leave out characters that
// look alike and characters that shells and XML treat specially.
var classes = []string{"ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnpqrstuvwxyz", "23456789", "-_.:+="}

// GeneratePassword returns a random password of 24 characters, of all four classes that
// Windows' complexity rule counts.
func GeneratePassword() Password {
	all := strings.Join(classes, "")
	for { // each round succeeds with a probability above eight tenths
		out := make([]byte, generatedPassword)
		for n := range out {
			out[n] = all[index(len(all))]
		}
		if p := NewPassword(string(out)); complexity(p.Reveal()) == len(classes) && p.Check() == nil {
			return p
		}
	}
}

// index returns a random number from 0 to n-1, each equally likely. n is at most 256.
func index(n int) int {
	var b [1]byte
	for {
		_, _ = rand.Read(b[:]) // Read never fails
		if limit := 256 / n * n; int(b[0]) < limit {
			return int(b[0]) % n
		}
	}
}

// Check returns an error for a password at which Windows' first start would stop. The error never
// contains the password.
func (p Password) Check() error {
	text := p.Reveal()
	length := utf8.RuneCountInString(text)
	lower := strings.ToLower(text)
	switch {
	case length < minPassword || length > maxPassword:
		return fmt.Errorf("the administrator's password has %d characters; use %d to %d", length, minPassword, maxPassword)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, control):
		return errors.New("the administrator's password has a control character; use letters, digits and punctuation")
	case complexity(text) < 3:
		return errors.New("the administrator's password is too simple; use three of: upper case, lower case, digits, " +
			"punctuation")
	case strings.Contains(lower, "administrator"):
		return errors.New("the administrator's password contains the account's name, which Windows refuses; use another")
	}
	return nil
}

// complexity returns how many of the four classes of characters a text has.
func complexity(text string) int {
	var found [4]bool
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			found[0] = true
		case unicode.IsLower(r):
			found[1] = true
		case unicode.IsDigit(r):
			found[2] = true
		default:
			found[3] = true
		}
	}
	count := 0
	for _, is := range found {
		if is {
			count++
		}
	}
	return count
}

// encode returns a password in the form that Setup reads in an element: the password and the element's
// name, as UTF-16LE in base64. This form does not protect the password; it only keeps a person from
// reading the text at a glance.
func encode(password, element string) string {
	var raw []byte
	for _, unit := range utf16.Encode([]rune(password + element)) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return base64.StdEncoding.EncodeToString(raw)
}
