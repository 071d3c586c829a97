package cli

import "github.com/swdt-dev/swdt/internal/ui"

// verbatim reports whether lines need not be looked at before they are printed: of a
// log on its own, nothing but their text is shown.
func (p *logPrinter) verbatim() bool {
	return p.records == nil && !p.colour && !p.timestamps && !p.nodes && !p.sources
}

// raw prints whole lines. Nearly always all of them are plain text, and go out in
// one piece.
func (p *logPrinter) raw(text []byte) error {
	shown := ui.NewPrintableWriter(p.out)
	if _, err := shown.Write(text); err != nil {
		return err
	}
	return shown.Flush()
}
