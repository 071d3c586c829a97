package scale

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// The size of a chart, in the units of its SVG.
const (
	chartWidth, chartHeight = 720.0, 180.0
	chartLeft, chartBottom  = 60.0, 24.0
	chartTop, chartRight    = 10.0, 26.0
)

// curve is one line of a chart.
type curve struct {
	name  string
	class string // of its style
	of    func(Sample) float64
}

// chart is one chart of the page.
type chart struct {
	Title  string
	Unit   string
	curves []curve
}

// charts returns the charts of a node.
func charts() []chart {
	return []chart{
		{"Services", "", []curve{
			{"written", "a", func(s Sample) float64 { return float64(s.Written) }},
			{"programmed in HNS", "b", func(s Sample) float64 { return float64(s.Programmed) }},
		}},
		{"Changes that wait for the proxy's next sync", "", []curve{
			{"Services", "a", func(s Sample) float64 { return s.PendingServices }},
			{"endpoints", "b", func(s Sample) float64 { return s.PendingEndpoints }},
		}},
		{"CPU", "cores", []curve{
			{"proxy", "a", func(s Sample) float64 { return s.ProxyCores }},
			{"HNS", "b", func(s Sample) float64 { return s.HNSCores }},
			{"agent of swdt", "c", func(s Sample) float64 { return s.AgentCores }},
		}},
		{"Memory of the proxy", "MiB", []curve{
			{"working set", "a", func(s Sample) float64 { return float64(s.ProxyMemoryBytes) / (1 << 20) }},
		}},
	}
}

// drawing is a chart with its coordinates.
type drawing struct {
	Title  string
	Unit   string
	Legend []legend
	SVG    template.HTML
}

type legend struct{ Name, Class string }

// draw returns the chart of samples as SVG, of which each part is a number or a constant of this file.
func (c chart) draw(samples []Sample) drawing {
	d := drawing{Title: c.Title, Unit: c.Unit}
	end, most := 1.0, 0.0
	for _, s := range samples {
		end = max(end, s.Seconds)
		for _, curve := range c.curves {
			most = max(most, curve.of(s))
		}
	}
	top := roundUp(most)
	x := func(seconds float64) float64 {
		return chartLeft + seconds/end*(chartWidth-chartLeft-chartRight)
	}
	y := func(v float64) float64 {
		return chartHeight - chartBottom - v/top*(chartHeight-chartTop-chartBottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img">`, chartWidth, chartHeight)
	for _, share := range []float64{0, 0.5, 1} {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, chartLeft, chartWidth-chartRight,
			y(share*top), y(share*top))
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end">%.4g</text>`, chartLeft-6, y(share*top)+4, share*top)
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%.0f s</text>`, x(share*end), chartHeight-6, share*end)
	}
	for _, at := range phaseBegins(samples) {
		fmt.Fprintf(&b, `<line class="phase" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, x(at), x(at), chartTop,
			chartHeight-chartBottom)
	}
	for _, curve := range c.curves {
		d.Legend = append(d.Legend, legend{curve.name, curve.class})
		fmt.Fprintf(&b, `<polyline class="%s" points="`, curve.class)
		for _, s := range samples {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(s.Seconds), y(curve.of(s)))
		}
		b.WriteString(`"/>`)
	}
	b.WriteString("</svg>")
	d.SVG = template.HTML(b.String()) //nolint:gosec // numbers and constants only
	return d
}

// phaseBegins returns the times of the first samples of each phase, in seconds.
func phaseBegins(samples []Sample) (all []float64) {
	before := ""
	for _, s := range samples {
		if s.Phase != before {
			all = append(all, s.Seconds)
			before = s.Phase
		}
	}
	return all
}

// roundUp returns the next of 1, 2, 5, 10, 20, 50 … or a fraction of these.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}
