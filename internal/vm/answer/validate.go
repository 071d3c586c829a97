package answer

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// purpose is the file that options are checked for.
type purpose int

const (
	forSetup purpose = iota
	forImage
)

// Limits of Setup.
const (
	maxIndex       = 100 // more images than any media have; Setup itself has no such limit
	maxCommands    = 20
	maxCommand     = 1024 // characters
	maxDescription = 256
)

func (o Options) withDefaults() Options {
	o.TimeZone = cmp.Or(o.TimeZone, "UTC")
	return o
}

// check returns every problem of the options at once.
func (o Options) check(use purpose) error {
	problems := []error{
		o.Release.check(),
		CheckComputerName(o.ComputerName),
		CheckTimeZone(o.TimeZone),
		CheckLanguage(o.Language),
		o.Password.Check(),
		checkCommands(o.FirstLogon),
	}
	if use == forSetup {
		problems = append(problems, checkIndex(o.Index), CheckProductKey(o.ProductKey), checkFolder(o.DriverFolder))
	}
	return errors.Join(problems...)
}

func checkIndex(index int) error {
	if index < 1 || index > maxIndex {
		return fmt.Errorf("index %d is no image of the media; write one that `swdt vm image inspect` prints", index)
	}
	return nil
}

// computerName matches a NetBIOS name that is also a DNS label, as kubelet needs it.
var computerName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,13}[A-Za-z0-9])?$`)

// CheckComputerName returns an error for a name that Windows or Kubernetes refuses.
func CheckComputerName(name string) error {
	if !computerName.MatchString(name) || strings.Trim(name, "0123456789") == "" {
		return fmt.Errorf("computer name %q: write 1 to 15 of A–Z, a–z, 0–9 and -, not digits alone, and no "+
			"- at an end", name)
	}
	return nil
}

// CheckTimeZone returns an error for a time zone that Windows does not know.
func CheckTimeZone(name string) error {
	if slices.Contains(TimeZones(), name) {
		return nil
	}
	return fmt.Errorf("time zone %q is not a time zone of Windows; write one that `tzutil /l` prints on Windows, "+
		"such as %q", name, "W. Europe Standard Time")
}

//go:embed timezones.txt
var timeZones string

// TimeZones lists the time zones of Windows.
func TimeZones() []string { return strings.Split(strings.TrimSpace(timeZones), "\n") }

var language = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z][a-z]{3})?-[A-Z]{2}$`)

// CheckLanguage returns an error for a text that is no language tag of Windows media.
func CheckLanguage(tag string) error {
	if !language.MatchString(tag) {
		return fmt.Errorf("language %q: write the language of the media, such as en-US", tag)
	}
	return nil
}

var productKey = regexp.MustCompile(`^([0-9A-Z]{5}-){4}[0-9A-Z]{5}$`)

// CheckProductKey returns an error for a text without the form of a key; "" is valid, and
// means no key. The error does not repeat the text.
func CheckProductKey(key string) error {
	if key != "" && !productKey.MatchString(key) {
		return errors.New("productKey: write five groups of five characters A–Z and 0–9 with - between them, " +
			"or remove the field for evaluation media")
	}
	return nil
}

var folderName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

func checkFolder(name string) error {
	if name != "" && !folderName.MatchString(name) {
		return fmt.Errorf("driver folder %q: write a folder of the CD's root, of A–Z, a–z, 0–9, _ and -", name)
	}
	return nil
}

func checkCommands(commands []Command) error {
	if len(commands) > maxCommands {
		return fmt.Errorf("%d commands of the first logon; at most %d are possible, so put them into a script",
			len(commands), maxCommands)
	}
	for n, command := range commands {
		for _, text := range []struct {
			field, value string
			most         int
		}{{"line", command.Line, maxCommand}, {"description", command.Description, maxDescription}} {
			count := utf8.RuneCountInString(text.value)
			if count == 0 || count > text.most || !utf8.ValidString(text.value) ||
				slices.ContainsFunc([]rune(text.value), control) {
				return fmt.Errorf("command %d of the first logon: its %s has %d characters; write 1 to %d, without controls",
					n+1, text.field, count, text.most)
			}
		}
	}
	return nil
}

// control reports whether a character is a control character, or one that XML cannot hold.
func control(r rune) bool { return unicode.IsControl(r) || r == 0xfffe || r == 0xffff }
