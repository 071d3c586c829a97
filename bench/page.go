//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writePages fills the tables of docs/benchmarks.md, between their markers, and
// draws the plots. The text around the tables is written by hand.
func writePages(docs string, r Results) error {
	path := filepath.Join(docs, "benchmarks.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sections := map[string]string{}
	images := map[string][]byte{}
	if len(r.Sizes.Pairs) > 0 {
		sections["sizes"] = sizesTables(r.Sizes)
		images["patches.svg"] = patchesPlot(r.Sizes.Pairs[0])
	}
	if len(r.Pushes.Links) > 0 {
		sections["pushes"] = pushesTables(r.Pushes)
		images["pushes.svg"] = pushesPlot(r.Pushes)
		images["push-parts.svg"] = partsPlot(r.Pushes)
	}
	if len(r.Downtime.Sizes) > 0 {
		sections["downtime"] = downtimeTable(r.Downtime)
	}
	if len(r.Logs.Ways) > 0 {
		sections["logs"] = logsTable(r.Logs)
	}
	if len(r.Stats.Watches) > 0 {
		sections["stats"] = statsTable(r.Stats)
	}
	if len(r.Relay.Calls) > 0 {
		sections["relay"] = relayTable(r.Relay)
	}
	if len(r.VM.Starts) > 0 {
		sections["vm"] = vmTable(r.VM)
	}
	for name, text := range sections {
		if page, err = replaceSection(page, name, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	folder := filepath.Join(docs, "img")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, image := range images {
		if err := os.WriteFile(filepath.Join(folder, name), image, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replaceSection puts text between <!-- bench:NAME --> and <!-- /bench:NAME -->.
func replaceSection(page []byte, name, text string) ([]byte, error) {
	begin, end := []byte("<!-- bench:"+name+" -->\n"), []byte("<!-- /bench:"+name+" -->")
	before, rest, found := bytes.Cut(page, begin)
	_, after, alsoFound := bytes.Cut(rest, end)
	if !found || !alsoFound {
		return nil, fmt.Errorf("the markers %q and %q are missing", begin, end)
	}
	return slices.Concat(before, begin, []byte("\n"+text+"\n"), end, after), nil
}

// table returns a Markdown table. All columns except the first contain numbers.
func table(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	b.WriteString("|---" + strings.Repeat("|---:", len(header)-1) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

func sizesTables(s Sizes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", machineLine(s.Machine, s.Repeat))
	for _, p := range s.Pairs {
		fmt.Fprintf(&b, "\n**%s**, %s → %s bytes\n\n", p.What, grouped(p.OldBytes), grouped(p.NewBytes))
		b.WriteString(patchTable(p))
	}
	b.WriteString("\nApplying on one core (read, verified, written; new bytes a second):\n\n")
	var rows [][]string
	for _, p := range s.Pairs {
		row := []string{p.Name}
		for _, variant := range []string{swdtFast, swdtSmall} {
			row = append(row, dash(p.OneCore[variant] > 0, fmt.Sprintf("%.0f MB/s", p.OneCore[variant]/1e6)))
		}
		rows = append(rows, row)
	}
	b.WriteString(table([]string{"pair", swdtFast, swdtSmall}, rows))
	return b.String()
}

// patchTable compares the bytes and seconds of each tool with those of bsdiff.
func patchTable(p PairResult) string {
	var bsdiff Patch
	for _, patch := range p.Patches {
		if patch.Tool == "bsdiff" {
			bsdiff = patch
		}
	}
	known := bsdiff.Error == "" && bsdiff.Bytes > 0
	var rows [][]string
	for _, c := range p.Patches {
		if c.Error != "" {
			why, _, _ := strings.Cut(c.Error, "\n")
			rows = append(rows, []string{c.Tool, why, "–", "–", "–", "–", "–", "–", "–"})
			continue
		}
		applies := c.ApplySeconds > 0
		rows = append(rows, []string{
			c.Tool, grouped(c.Bytes), dash(known, ratio(float64(c.Bytes), float64(bsdiff.Bytes))),
			seconds(c.DiffSeconds), dash(known, ratio(c.DiffSeconds, bsdiff.DiffSeconds)),
			dash(c.DiffCPU > 0, seconds(c.DiffCPU)), megabytes(c.DiffMemory), dash(applies, seconds(c.ApplySeconds)),
			dash(applies, megabytes(c.ApplyMemory)),
		})
	}
	return table([]string{"", "bytes", "÷ bsdiff", "diff s", "÷ bsdiff", "processor s", "diff MB", "apply s",
		"apply MB"}, rows)
}

func pushesTables(p Pushes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s, %s bytes. Seconds:\n\n", machineLine(p.Machine, p.Repeat), p.Pair.What,
		grouped(p.Pair.NewBytes))
	header := []string{""}
	for _, link := range p.Links {
		header = append(header, link.Name)
	}
	b.WriteString(table(header, pushRows(p)))
	b.WriteString("\nTime relative to swdt's: of the whole command / without the time to connect, until the file is " +
		"there (with swdt: and verified):\n\n")
	b.WriteString(table(header, ratioRows(p)))
	b.WriteString("\nThe parts of `swdt push`, in seconds, and its time until the verified file is in its place:\n\n")
	b.WriteString(table(header, partRows(p)))
	b.WriteString("\nBytes that swdt sent:\n\n")
	b.WriteString(table(header, sentRows(p)))
	return b.String()
}

// staged is the suffix of the rows with swdt's time until the file is staged and verified.
const staged = ", to the verified file"

func pushRows(p Pushes) [][]string {
	var rows [][]string
	for i, way := range p.Links[0].Ways {
		row, inner := []string{way.Way}, []string{way.Way + staged}
		for _, link := range p.Links {
			cell := link.Ways[i]
			row = append(row, dash(cell.Error == "", seconds(cell.Seconds)))
			inner = append(inner, dash(cell.Error == "", seconds(cell.TransferSeconds)))
		}
		rows = append(rows, row)
		if way.Method != "" {
			rows = append(rows, inner)
		}
	}
	return rows
}

func ratioRows(p Pushes) [][]string {
	var rows [][]string
	for i, way := range p.Links[0].Ways {
		if way.Way == wayConnect || way.Way == waySwdt || way.Way == waySwdtFirst {
			continue
		}
		row := []string{way.Way}
		for _, link := range p.Links {
			own, ok := find(link, waySwdt)
			connect, connects := find(link, wayConnect)
			cell := link.Ways[i]
			ok = ok && connects && cell.Error == "" && own.Error == ""
			row = append(row, dash(ok, ratio(cell.Seconds, own.Seconds)+" / "+ratio(cell.Seconds-connect.Seconds,
				own.TransferSeconds)))
		}
		rows = append(rows, row)
	}
	return rows
}

// partRows lists the parts of swdt's push.
func partRows(p Pushes) [][]string {
	first, _ := find(p.Links[0], waySwdt)
	row := func(name string, value func(Push) float64) []string {
		cells := []string{name}
		for _, link := range p.Links {
			cell, ok := find(link, waySwdt)
			cells = append(cells, dash(ok && cell.Error == "", seconds(value(cell))))
		}
		return cells
	}
	var rows [][]string
	for _, part := range first.Parts {
		rows = append(rows, row(part.Name, func(p Push) float64 { return p.seconds(part.Name) }))
	}
	return append(rows,
		row("to the swapped file", func(p Push) float64 { return p.SwappedSeconds }),
		row("the same after `ssh true`, paired", func(p Push) float64 { return p.AfterConnect }))
}

func sentRows(p Pushes) [][]string {
	var rows [][]string
	for _, way := range []string{waySwdt, waySwdtFirst} {
		row := []string{way}
		for _, link := range p.Links {
			cell, ok := find(link, way)
			row = append(row, dash(ok && cell.Error == "",
				fmt.Sprintf("%s (%s)", grouped(cell.SentBytes), cell.Method)))
		}
		rows = append(rows, row)
	}
	return rows
}

func find(link LinkResult, way string) (Push, bool) {
	for _, cell := range link.Ways {
		if cell.Way == way {
			return cell, true
		}
	}
	return Push{}, false
}

func downtimeTable(d Downtime) string {
	var rows [][]string
	var medians []float64
	for _, size := range d.Sizes {
		m := median(size.Seconds)
		medians = append(medians, m)
		rows = append(rows, []string{
			grouped(size.Bytes), fmt.Sprint(len(size.Seconds)), seconds(m),
			seconds(slices.Min(size.Seconds)), seconds(slices.Max(size.Seconds)),
		})
	}
	text := machineLine(d.Machine, 0) + "\n\n" +
		table([]string{"bytes", "pushes", "median s", "least s", "most s"}, rows)
	if len(medians) == 2 {
		text += fmt.Sprintf("\nThe large binary's median is %s of the small one's.\n", ratio(medians[1], medians[0]))
	}
	return text
}

func machineLine(m Machine, repeat int) string {
	line := fmt.Sprintf("%s, %d cores, %s; load before: %s; %s.", m.Processor, m.Cores, m.System,
		cmp.Or(m.Load, "unknown"), strings.Join(m.Versions, ", "))
	if repeat > 0 {
		line += fmt.Sprintf(" Medians of %d; measurements of more than %.0f s were made once.", repeat, slow)
	}
	return m.When + ": " + line
}

func dash(ok bool, text string) string {
	if !ok {
		return "–"
	}
	return text
}

func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	switch r := a / b; {
	case r >= 10:
		return fmt.Sprintf("%.0f ×", r)
	case r >= 0.1:
		return fmt.Sprintf("%.2f ×", r)
	default:
		return fmt.Sprintf("%.4f ×", r)
	}
}

func seconds(s float64) string {
	if s >= 10 {
		return fmt.Sprintf("%.1f", s)
	}
	return fmt.Sprintf("%.3f", s)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/1e6) }

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
