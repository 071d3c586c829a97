package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

const (
	chartWidth  = 720
	chartHeight = 180
	// left, bottom and top are the space for the labels, which are larger on a small screen.
	left   = 84
	bottom = 28
	top    = 16
	// mostPoints is the approximate maximum number of points of a line. More points than the
	// picture has pixels would not be visible.
	mostPoints = 600
)

// drawn is a chart as report.html draws it. Lengths are in units of the SVG picture.
type drawn struct {
	Listed
	Reported, Computed  string // SVG paths
	Marks               []mark
	Limit               float64 // y; 0: none
	YTicks, XTicks      []axisTick
	Points              []hover
	Width, Height, Left int
}

type mark struct {
	X, Y    float64
	Clipped bool // reports whether the value is above the top of the picture
}

type axisTick struct {
	At   float64
	Text string
}

// hover is the text that the page shows when the pointer is near X.
type hover struct {
	X    float64 `json:"x"`
	Text string  `json:"text"`
}

func (c *chart) draw() drawn {
	points := thin(c.points)
	d := drawn{Listed: c.listed(), Width: chartWidth, Height: chartHeight, Left: left}
	if len(points) == 0 {
		return d
	}
	highest := c.highest(points)
	first, last := points[0].at, points[len(points)-1].at
	span := max(last.Sub(first).Seconds(), 1)
	x := func(p chartPoint) float64 { return left + p.at.Sub(first).Seconds()/span*(chartWidth-left-8) }
	y := func(v float64) float64 {
		return top + (1-min(v/highest, 1))*(chartHeight-top-bottom)
	}
	var reported, computed path
	for _, p := range points {
		d.Points = append(d.Points, hover{round(x(p)), p.text()})
		if p.faulty {
			v := 0.0
			if p.reported != nil {
				v = *p.reported
			}
			d.Marks = append(d.Marks, mark{round(x(p)), round(y(v)), v > highest})
		}
		if p.caller == 0 {
			reported.to(x(p), y, p.reported)
			computed.to(x(p), y, p.computed)
		}
	}
	d.Reported, d.Computed = reported.String(), computed.String()
	if c.limit > 0 && c.limit <= highest {
		d.Limit = round(y(c.limit))
	}
	for _, part := range []float64{0, 0.5, 1} {
		d.YTicks = append(d.YTicks, axisTick{round(y(part * highest)), tick(part * highest)})
		at := first.Add(time.Duration(part * float64(last.Sub(first))))
		d.XTicks = append(d.XTicks, axisTick{round(left + part*(chartWidth-left-8)), at.UTC().Format("15:04:05")})
	}
	return d
}

// tick formats a number of cores for the narrow space beside the axis.
func tick(cores float64) string {
	if cores < 0.1 {
		return fmt.Sprintf("%.2g", cores)
	}
	return fmt.Sprintf("%.3g", cores)
}

// highest returns the largest value of the y axis. It excludes impossible rates, which would
// flatten the lines of all other rates.
func (c *chart) highest(points []chartPoint) float64 {
	highest := 0.001
	for _, p := range points {
		if p.computed != nil {
			highest = max(highest, 2.5**p.computed)
		}
		if p.reported != nil && !p.faulty {
			highest = max(highest, 1.1**p.reported)
		}
	}
	return max(highest, min(1.1*c.limit, 4*highest))
}

// thin returns fewer points: those with faults, up to a maximum, and as many of the other
// points as the picture can show.
func thin(points []chartPoint) []chartPoint {
	every := len(points)/mostPoints + 1
	var kept []chartPoint
	for i, p := range points {
		if i%every == 0 || i == len(points)-1 || p.faulty && len(kept) < 3*mostPoints {
			kept = append(kept, p)
		}
	}
	return kept
}

// text returns the text for the pointer: a line for each number and each verdict.
func (p chartPoint) text() string {
	lines := []string{p.at.UTC().Format("15:04:05.000") + " UTC", "reported " + cores(p.reported),
		"computed " + cores(p.computed)}
	if p.memory != nil {
		lines = append(lines, fmt.Sprintf("memory %.1f MB", float64(*p.memory)/1e6))
	}
	if p.caller != 0 {
		lines = append(lines, fmt.Sprintf("asked by caller %d", p.caller+1))
	}
	for _, v := range p.verdicts {
		if rule, ok := stats.RuleOf(v); ok {
			lines = append(lines, fmt.Sprintf("%s: %s", v, rule.Means))
		}
	}
	return strings.Join(lines, "\n")
}

func cores(v *float64) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprintf("%.3f cores", *v)
}

// path is an SVG path with a gap for each missing number.
type path struct {
	strings.Builder
	drawing bool
}

func (p *path) to(x float64, y func(float64) float64, v *float64) {
	if v == nil {
		p.drawing = false
		return
	}
	command := "M"
	if p.drawing {
		command = "L"
	}
	fmt.Fprintf(p, "%s%.1f %.1f", command, x, y(*v))
	p.drawing = true
}

func round(v float64) float64 { return float64(int(v*10+0.5)) / 10 }
