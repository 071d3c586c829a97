//go:build linux

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// svg is a drawing, in colours that are readable on light and on dark pages.
type svg struct {
	width, height float64
	body          strings.Builder
}

func (s *svg) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&s.body, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class,
		html.EscapeString(text))
}

func (s *svg) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&s.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>`+"\n", x, y, w, h, class)
}

func (s *svg) line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&s.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", x1, y1, x2, y2)
}

func (s *svg) circle(x, y, r float64, class string) {
	fmt.Fprintf(&s.body, `<circle cx="%.1f" cy="%.1f" r="%.1f" class="%s"/>`+"\n", x, y, r, class)
}

func (s *svg) bytes(title string) []byte {
	return fmt.Appendf(nil,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">
<title>%s</title>
<style>
  rect.page { fill: #ffffff }
  text { font: 12px sans-serif; fill: #24292f }
  text.small { font-size: 11px; fill: #57606a }
  text.head { font-weight: bold; font-size: 13px }
  .own { fill: #0969da }
  .peer { fill: #afb8c1 }
  .soft { fill: #b6e3ff }
  line { stroke: #d8dee4 }
</style>
<rect width="%.0f" height="%.0f" class="page"/>
%s</svg>
`, s.width, s.height, s.width, s.height, html.EscapeString(title), s.width, s.height, s.body.String())
}

// scale maps values to pixels by their logarithm.
type scale struct{ least, most, from, to float64 }

// newScale returns a scale with whole powers of ten at both ends.
func newScale(least, most, from, to float64) scale {
	return scale{math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most))), from, to}
}

func (s scale) at(v float64) float64 {
	v = max(v, s.least)
	return s.from + (s.to-s.from)*math.Log10(v/s.least)/math.Log10(s.most/s.least)
}

// ticks returns the powers of ten on the scale.
func (s scale) ticks() []float64 {
	var t []float64
	for v := s.least; v <= s.most*1.001; v *= 10 {
		t = append(t, v)
	}
	return t
}

// pushesPlot draws a bar for each way and link, on one scale of time.
func pushesPlot(p Pushes) []byte {
	const label, bar, gap, right = 230.0, 18.0, 30.0, 80.0
	s := &svg{width: 860}
	s.height = 44
	least, most := math.Inf(1), 0.0
	for _, link := range p.Links {
		for _, b := range bars(link) {
			least, most = min(least, b.seconds), max(most, b.seconds)
			s.height += bar
		}
		s.height += gap
	}
	x := newScale(least, most, label, s.width-right)
	for _, tick := range x.ticks() {
		s.line(x.at(tick), 26, x.at(tick), s.height-10)
		s.text(x.at(tick), 18, "middle", "small", fmt.Sprintf("%g s", tick))
	}
	y := 44.0
	for _, link := range p.Links {
		s.text(8, y+2, "start", "head", link.Name)
		y += 10
		for _, b := range bars(link) {
			s.text(label-8, y+12, "end", "", b.label)
			s.rect(label, y+2, max(1, x.at(b.seconds)-label), bar-4, b.class)
			s.text(x.at(b.seconds)+6, y+12, "start", "small", seconds(b.seconds)+" s")
			y += bar
		}
		y += gap - 10
	}
	return s.bytes("Seconds to push a rebuilt kubelet.exe over four links; logarithmic")
}

// partsPlot draws the parts of swdt's push one behind the other, a bar for each link.
func partsPlot(p Pushes) []byte {
	const label, bar, right = 120.0, 30.0, 20.0
	s := &svg{width: 860}
	longest := 0.0
	for _, link := range p.Links {
		cell, _ := find(link, waySwdt)
		sum := 0.0
		for _, part := range cell.Parts {
			sum += part.Seconds
		}
		longest = max(longest, sum)
	}
	y := 10.0
	for _, link := range p.Links {
		cell, _ := find(link, waySwdt)
		s.text(label-8, y+18, "end", "", link.Name)
		x := label
		for i, part := range cell.Parts {
			width := part.Seconds / longest * (s.width - label - right)
			s.rect(x, y, max(1, width-1), bar-8, []string{"soft", "peer"}[i%2])
			if width > 6.6*float64(len(part.Name)) {
				s.text(x+3, y+15, "start", "small", part.Name)
			}
			x += width
		}
		y += bar
	}
	s.height = y + 10
	return s.bytes("The parts of swdt push of a rebuilt kubelet.exe over four links, in their order")
}

type plotBar struct {
	label, class string
	seconds      float64
}

func bars(link LinkResult) []plotBar {
	var all []plotBar
	for _, way := range link.Ways {
		switch {
		case way.Error != "" || way.Way == wayConnect || way.Way == waySwdtFirst:
		case way.Way == waySwdt:
			all = append(all, plotBar{"swdt, file there and verified", "own", way.TransferSeconds},
				plotBar{"swdt, whole command", "own", way.Seconds})
		default:
			all = append(all, plotBar{strings.ReplaceAll(way.Way, `\`, ""), "peer", way.Seconds})
		}
	}
	return all
}

// label is the place of a text. patchesPlot moves a label down if it overlaps an earlier one.
type label struct{ x, y, width float64 }

func (l label) overlaps(other label) bool {
	return math.Abs(l.y-other.y) < 12 && l.x < other.x+other.width && other.x < l.x+l.width
}

// patchesPlot draws a point for every tool: time on the x axis, bytes on the y axis.
func patchesPlot(p PairResult) []byte {
	s := &svg{width: 860, height: 460}
	var points []Patch
	leastX, mostX, leastY, mostY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, c := range p.Patches {
		if c.Error != "" || c.Bytes == 0 || c.DiffSeconds == 0 {
			continue
		}
		points = append(points, c)
		leastX, mostX = min(leastX, c.DiffSeconds), max(mostX, c.DiffSeconds)
		leastY, mostY = min(leastY, float64(c.Bytes)), max(mostY, float64(c.Bytes))
	}
	x := newScale(leastX, mostX, 80, s.width-120)
	y := newScale(leastY, mostY, s.height-50, 40)
	for _, tick := range x.ticks() {
		s.line(x.at(tick), y.to, x.at(tick), y.from)
		s.text(x.at(tick), y.from+18, "middle", "small", fmt.Sprintf("%g s", tick))
	}
	for _, tick := range y.ticks() {
		s.line(x.from, y.at(tick), x.to, y.at(tick))
		s.text(x.from-8, y.at(tick)+4, "end", "small", grouped(int64(tick)))
	}
	s.text(x.from-60, 22, "start", "head", "bytes of the patch")
	s.text(x.to, y.from+38, "end", "head", "seconds to make it")
	var labels []label
	for _, c := range points {
		class := "peer"
		if strings.HasPrefix(c.Tool, "swdt") {
			class = "own"
		}
		px, py := x.at(c.DiffSeconds), y.at(float64(c.Bytes))
		s.circle(px, py, 6, class)
		l := label{px + 10, py + 4, 6.6 * float64(len(c.Tool))}
		for _, other := range labels {
			if l.overlaps(other) {
				l.y = other.y + 14
			}
		}
		labels = append(labels, l)
		s.text(l.x, l.y, "start", "", c.Tool)
	}
	return s.bytes(p.What + ": bytes and seconds of each tool; logarithmic")
}
