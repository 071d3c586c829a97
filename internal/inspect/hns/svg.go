package hns

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// These are the measures of the picture in pixels. Load balancers are drawn left and
// right of the networks, so that lines are short.
const (
	margin       = 24
	headHeight   = 52
	lineHeight   = 17
	rowHeight    = 22
	padding      = 8
	between      = 10
	balancerWide = 300
	networkWide  = 520
	linesWide    = 190
	// letterWide is the approximate width of a letter in the fonts used.
	letterWide = 6.6

	leftX   = margin
	middleX = leftX + balancerWide + linesWide
	rightX  = middleX + networkWide + linesWide
	allWide = rightX + balancerWide + margin
)

// style has all colours, for light and for dark mode.
const style = `
  svg { --page:#fff; --ink:#1c2128; --soft:#59636e; --line:#d1d9e0; --net:#f6f8fa; --pod:#ddf4ff; --podline:#54aeff;
        --far:#fff; --lb:#fff8c5; --lbline:#d4a72c; --bad:#ffebe9; --badline:#ff8182; --edge:#8c959f;
        background:var(--page); font:12px ui-sans-serif,system-ui,"Segoe UI",sans-serif }
  @media (prefers-color-scheme: dark) {
    svg { --page:#0d1117; --ink:#e6edf3; --soft:#9198a1; ` +
	`--line:#3d444d; --net:#151b23; --pod:#0c2d4d; --podline:#316dca;
          --far:#0d1117; --lb:#2f2608; --lbline:#9e6a03; --bad:#3c1417; --badline:#b62324; --edge:#656c76 } }
  text { fill:var(--ink) } .soft { fill:var(--soft) } ` +
	`.head { font-size:16px; font-weight:600 } .name { font-weight:600 }
  .ip { font-family:ui-monospace,monospace; font-size:11px; fill:var(--soft) }
  .net { fill:var(--net); stroke:var(--line) } .pod { fill:var(--pod); stroke:var(--podline) }
  .far { fill:var(--far); stroke:var(--line); stroke-dasharray:3 3 }
  .lb { fill:var(--lb); stroke:var(--lbline) } .none .lb { fill:var(--bad); stroke:var(--badline) }
  path { fill:none; stroke:var(--edge); opacity:.45 }
  .b:hover path { stroke:var(--lbline); opacity:1; stroke-width:2 } .b:hover .lb { stroke-width:2 }
`

// SVG writes the picture as an SVG file, which loads no other files.
func (g Graph) SVG(w io.Writer) error {
	p := &picture{at: map[string]float64{}}
	bottom := p.networks(g.Networks)
	bottom = max(bottom, p.balancers(g.Balanced))
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img">`+"\n",
		allWide, bottom+margin, allWide, bottom+margin)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(g.Title), style)
	fmt.Fprintf(&b, `<text class="head" x="%d" y="34">%s</text>`+"\n", margin, html.EscapeString(g.Title))
	b.WriteString(p.lines.String())
	b.WriteString(p.boxes.String())
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// picture collects the elements of the SVG file. Load balancers with their connections are in
// lines, which are drawn first, so that the boxes of networks cover the ends of the connections.
type picture struct {
	lines, boxes strings.Builder
	// the vertical middle of each endpoint's row, by the endpoint's ID
	at map[string]float64
}

// networks draws the networks below each other and returns the lower end of the last one.
func (p *picture) networks(groups []Group) float64 {
	y := float64(headHeight)
	for _, group := range groups {
		lines := group.Network.lines()
		height := float64(2*padding + lineHeight*len(lines) + rowHeight*len(group.Endpoints))
		fmt.Fprintf(&p.boxes, `<g><rect class="net" x="%d" y="%.0f" width="%d" height="%.0f" rx="6"/>`+"\n",
			middleX, y, networkWide, height)
		for i, line := range lines {
			class := "soft"
			if i == 0 {
				class = "name"
			}
			text(&p.boxes, middleX+padding, y+padding+float64(lineHeight*(i+1))-5, class, line, networkWide-2*padding)
		}
		row := y + padding + float64(lineHeight*len(lines))
		for _, v := range group.Endpoints {
			p.endpoint(v, row)
			row += rowHeight
		}
		p.boxes.WriteString("</g>\n")
		y += height + between
	}
	return y - between
}

const addressWide = 120

func (p *picture) endpoint(v Vertex, y float64) {
	class := "pod"
	if v.Endpoint.Remote {
		class = "far"
	}
	p.at[v.Endpoint.ID] = y + rowHeight/2
	fmt.Fprintf(&p.boxes, `<rect class="%s" x="%d" y="%.0f" width="%d" height="%d" rx="3"/>`, class, middleX+padding,
		y+1, networkWide-2*padding, rowHeight-2)
	text(&p.boxes, middleX+2*padding, y+15, "", v.label(), networkWide-4*padding-addressWide)
	fmt.Fprintf(&p.boxes, `<text class="ip" text-anchor="end" x="%d" y="%.0f">%s</text>`+"\n",
		middleX+networkWide-2*padding, y+15,
		html.EscapeString(v.Endpoint.IP()))
}

// balancers draws the load balancers in the order of their endpoints. It adds each load
// balancer to the shorter of the two columns, and returns the lower end of the longer
// column.
func (p *picture) balancers(bundles []Bundle) float64 {
	ordered := slices.Clone(bundles)
	slices.SortStableFunc(ordered, func(a, b Bundle) int { return cmp.Compare(p.middle(a), p.middle(b)) })
	left, right := float64(headHeight), float64(headHeight)
	for _, bundle := range ordered {
		if left <= right {
			left = p.balancer(bundle, leftX, left, leftX+balancerWide, middleX+padding)
		} else {
			right = p.balancer(bundle, rightX, right, rightX, middleX+networkWide-padding)
		}
	}
	return max(left, right) - between
}

// middle returns the mean position of a bundle's endpoints; a bundle without endpoints
// comes last.
func (p *picture) middle(b Bundle) float64 {
	sum, count := 0.0, 0.0
	for _, id := range b.Endpoints {
		if y, ok := p.at[id]; ok {
			sum, count = sum+y, count+1
		}
	}
	if count == 0 {
		return 1e9
	}
	return sum / count
}

func (p *picture) balancer(b Bundle, x, y, from, to float64) float64 {
	height := float64(2*padding + lineHeight*(1+len(b.Lines)))
	class := "b"
	if len(b.Endpoints) == 0 {
		class = "b none"
	}
	out := &p.lines
	fmt.Fprintf(out, `<g class="%s">`, class)
	for _, id := range b.Endpoints {
		if end, ok := p.at[id]; ok {
			begin, bend := y+height/2, (from+to)/2
			fmt.Fprintf(out, `<path d="M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f"/>`, from, begin, bend, begin,
				bend, end, to, end)
		}
	}
	fmt.Fprintf(out, `<rect class="lb" x="%.0f" y="%.0f" width="%d" height="%.0f" rx="6"/>`, x, y, balancerWide, height)
	text(out, x+padding, y+padding+12, "name", b.label(), balancerWide-2*padding)
	for i, line := range b.Lines {
		text(out, x+padding, y+padding+12+float64(lineHeight*(i+1)), "ip", line, balancerWide-2*padding)
	}
	out.WriteString("</g>\n")
	return y + height + between
}

// text draws a text. If the text is wider than the given number of pixels, only its beginning is
// drawn, and the whole text becomes a tooltip.
func text(out *strings.Builder, x, y float64, class, words string, room int) {
	letters, shown := []rune(words), words
	if fits := int(float64(room) / letterWide); len(letters) > fits {
		shown = string(letters[:fits-1]) + "…"
	}
	fmt.Fprintf(out, `<text class="%s" x="%.0f" y="%.0f">%s`, class, x, y, html.EscapeString(shown))
	if shown != words {
		fmt.Fprintf(out, "<title>%s</title>", html.EscapeString(words))
	}
	out.WriteString("</text>\n")
}
