package media

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of `swdt vm image inspect`.
type Report struct {
	File string `json:"file"`
	Sum         // the fields of Sum are "" if the hash was not computed
	Media
}

// WriteText writes a summary of the ISO, its editions or drivers, the findings, and the lines of a
// node file that use the ISO.
func (r Report) WriteText(p *ui.Page) error {
	for _, write := range []func(io.Writer) error{r.writeSummary, r.writeEditions, r.writeDrivers} {
		if err := write(p); err != nil {
			return err
		}
	}
	if err := r.writeFindings(p); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p, "\nIn the node file:\n\n%s", r.NodeFile())
	return err
}

func (r Report) writeSummary(w io.Writer) error {
	title := cmp.Or(r.Product, "Windows")
	if r.Kind == KindDrivers {
		title = "virtio drivers"
	}
	parts := []string{title}
	if r.Evaluation {
		parts = append(parts, "evaluation")
	}
	for _, part := range []string{r.Architecture, strings.Join(r.Languages, " "), ui.Size(r.SizeBytes)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if _, err := fmt.Fprintf(w, "%s: %s\n", ui.Printable(r.File), ui.Printable(strings.Join(parts, ", "))); err != nil {
		return err
	}
	rows := [][]string{{"  label", r.Label}}
	if r.Kind == KindWindows {
		rows = append(rows, [][]string{
			{"  version", r.Version}, {"  editions in", r.imageText()}, {"  boot", r.bootText()},
		}...)
	}
	if r.SHA256 != "" {
		known := cmp.Or(r.Known, "not one of the media that swdt knows")
		rows = append(rows, [][]string{{"  sha256", r.SHA256}, {"", known}}...)
	}
	return ui.Lines(w, rows)
}

func (r Report) imageText() string {
	text := fmt.Sprintf("%s, %s", r.Image.Path, ui.Size(r.Image.SizeBytes))
	if r.Image.Parts > 1 {
		text += fmt.Sprintf(", first of %d parts", r.Image.Parts)
	}
	return text + ", compression " + r.Image.Compression
}

func (r Report) bootText() string {
	var parts []string
	if r.Boot.UEFI {
		parts = append(parts, "UEFI")
	}
	if r.Boot.BIOS {
		parts = append(parts, "BIOS")
	}
	for _, file := range r.Boot.Files {
		if file.Present {
			parts = append(parts, file.Path)
		}
	}
	return strings.Join(parts, ", ")
}

func (r Report) writeEditions(w io.Writer) error {
	if r.Kind != KindWindows {
		return nil
	}
	var rows [][]string
	for _, e := range r.Editions {
		rows = append(rows, []string{strconv.Itoa(e.Index), e.Word, e.Name, e.EditionID, e.InstallationType, e.Version})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	header := []string{"INDEX", "EDITION", "NAME", "ID", "TYPE", "VERSION"}
	return ui.TableOr(w, "no editions", header, rows)
}

func (r Report) writeDrivers(w io.Writer) error {
	if r.Kind != KindDrivers {
		return nil
	}
	var rows [][]string
	for _, choice := range r.Drivers {
		rows = append(rows, []string{choice.Version, strings.Join(choice.Drivers, " ")})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return ui.TableOr(w, "no drivers", []string{"WINDOWS", "DRIVERS"}, rows)
}

func (r Report) writeFindings(p *ui.Page) error {
	if len(r.Findings) == 0 {
		return nil
	}
	var entries []finding.Entry
	for _, f := range r.Findings {
		entries = append(entries, finding.Entry{By: string(f.Severity), Finding: f})
	}
	if _, err := fmt.Fprintln(p); err != nil {
		return err
	}
	return finding.WriteList(p, entries)
}

// NodeFile returns the lines of a node file that use the ISO. For Windows media, the lines select
// the first edition that has a word in node files. If no edition has a word, they select the first
// edition by its index.
func (r Report) NodeFile() string {
	file, err := filepath.Abs(r.File)
	if err != nil {
		file = r.File
	}
	text := "spec:\n  machine:\n    image:\n"
	if r.Kind == KindDrivers {
		return text + "      drivers: " + yamlText(file) + "\n"
	}
	text += "      iso: " + yamlText(file) + "\n"
	for _, e := range r.Editions {
		if e.Word != "" {
			return text + "      edition: " + e.Word + "\n"
		}
	}
	if len(r.Editions) > 0 {
		text += fmt.Sprintf("      edition: \"%d\"\n", r.Editions[0].Index)
	}
	return text
}

// yamlText returns text as a YAML scalar, in quotes if it is more than a plain path.
func yamlText(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-"
	if strings.Trim(text, plain) == "" && strings.HasPrefix(text, "/") {
		return text
	}
	return strconv.Quote(text)
}
