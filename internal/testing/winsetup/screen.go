package winsetup

import "fmt"

// Screen is a screen at which Setup waits for a person: the installation cannot go on.
type Screen struct {
	Title, Text string
}

func (s *Screen) Error() string { return fmt.Sprintf("Windows Setup waits at %q: %s", s.Title, s.Text) }

func screen(title, text string) error { return &Screen{Title: title, Text: text} }

// invalid returns the screen for an answer file that Setup cannot use.
func invalid(pass, format string, args ...any) error {
	return screen("Windows Setup", "Windows could not parse or process the unattend answer file for pass ["+pass+"]: "+
		fmt.Sprintf(format, args...))
}
