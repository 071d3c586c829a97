package golden

import (
	"bytes"
	"context"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

const (
	// maxMarks bounds the marks that are kept. The script sends about 40.
	maxMarks = 1000
	// maxLine bounds a line of the serial port, in bytes; the rest of a longer line is dropped.
	maxLine = 4096
	// serialReads bounds how often one look reads the serial port.
	serialReads = 16
	// tailLength is how many bytes from the end of the serial port's text are kept for an error.
	tailLength = 2048
)

// guest is the VM of a build as package install watches it.
type guest struct {
	driver   vm.Installer
	machine  vm.Machine
	observer vm.Observer

	read   int64 // number of bytes that were read from the serial port
	line   []byte
	marks  []install.Mark
	tail   []byte
	screen []byte // the last screen that was seen, as PNG
}

// Look first observes the VM and then reads its serial port, so that the marks of a VM that has
// ended are complete.
func (g *guest) Look(ctx context.Context) (install.Signs, error) {
	seen, err := g.observer.Look(ctx)
	if err != nil {
		return install.Signs{}, err
	}
	if err := g.listen(ctx); err != nil {
		return install.Signs{}, err
	}
	signs := install.Signs{
		State: seen.State, Reason: seen.Reason, Resets: seen.Resets, Loaded: seen.Loaded, Written: seen.Written,
		Marks: g.marks,
	}
	if seen.Screen != nil {
		g.screen = seen.Screen
	}
	return signs, nil
}

// listen reads the new part of the serial port.
func (g *guest) listen(ctx context.Context) error {
	for range serialReads {
		text, err := g.driver.Serial(ctx, g.machine, g.read)
		if err != nil {
			return err
		}
		g.read += int64(len(text))
		g.hear(text)
		if len(text) < vm.MaxSerial {
			return nil
		}
	}
	return nil // the rest follows with the next look
}

// hear appends new text of the serial port to the tail, and adds the mark of each line that is now
// complete.
func (g *guest) hear(text []byte) {
	g.tail = append(g.tail, text...)
	g.tail = g.tail[max(0, len(g.tail)-tailLength):]
	for part := range bytes.Lines(text) {
		g.line = append(g.line, part[:min(len(part), maxLine-min(maxLine, len(g.line)))]...)
		if part[len(part)-1] != '\n' {
			return
		}
		if mark, ok := firstboot.ParseMark(string(g.line)); ok && len(g.marks) < maxMarks {
			g.marks = append(g.marks, markOf(mark))
		}
		g.line = g.line[:0]
	}
}

// markOf converts a mark of the script to a mark of package install.
func markOf(m firstboot.Mark) install.Mark {
	ended := m.State == firstboot.Exited
	if ended {
		m.Stage = "end"
	}
	return install.Mark{
		Stage: m.Stage, Message: m.Text, Last: ended,
		Failed: m.State == firstboot.Failed || ended && m.Code != 0,
	}
}

// PressKey presses a key at the prompt of the CD.
func (g *guest) PressKey(ctx context.Context, key string) error {
	return g.driver.SendKeys(ctx, g.machine, []string{key})
}
