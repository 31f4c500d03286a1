package main

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// The picture of what mark reads cost, in the units of SVG. Both axes are logarithmic.
const (
	plotWidth, plotHeight   = 760, 380
	plotLeft, plotRight     = 70, 520
	plotTop, plotBottom     = 50, 330
	fastest, slowest        = 100 * time.Nanosecond, time.Second
	legendLeft, legendEvery = 545, 26
)

// picture draws how long a mark read takes by how many messages it passes, in each scheme.
func (r *reading) picture(found rounds[receipts]) []byte {
	var svg bytes.Buffer
	x := func(passed int) float64 {
		return plotLeft + (plotRight-plotLeft)*math.Log10(float64(passed))/3
	}
	y := func(took time.Duration) float64 {
		share := math.Log10(float64(max(took, fastest))/float64(fastest)) / math.Log10(float64(slowest)/float64(fastest))
		return plotBottom - (plotBottom-plotTop)*share
	}
	text := func(x, y float64, anchor, format string, args ...any) {
		fmt.Fprintf(&svg, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n",
		plotWidth, plotHeight)
	fmt.Fprintf(&svg, "<title>What a markRead costs by how many messages it passes</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", plotWidth, plotHeight)
	text(plotLeft, 24, "start", "A markRead in a group of %d: time, by how many messages it passes", r.members+1)
	for took := fastest; took <= slowest; took *= 10 {
		fmt.Fprintf(&svg, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", plotLeft, plotRight, y(took), y(took))
		text(plotLeft-8, y(took)+4, "end", "%v", took)
	}
	for _, length := range []int{1, 10, 100, 1000} {
		text(x(length), plotBottom+20, "middle", "%d", length)
	}
	text((plotLeft+plotRight)/2, plotBottom+40, "middle", "messages passed")
	colors := []string{"#0b6e4f", "#c0392b", "#d68910", "#2e5fa3", "#7d3c98", "#555555"}
	for i, s := range r.schemes {
		color := colors[i%len(colors)]
		var points string
		for at, length := range passed() {
			times := make([]time.Duration, len(found))
			for n, one := range found {
				times[n] = one.marks[i][at]
			}
			px, py := x(length), y(median(times))
			points += fmt.Sprintf("%.1f,%.1f ", px, py)
			fmt.Fprintf(&svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", px, py, color)
		}
		fmt.Fprintf(&svg, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", points, color)
		at := float64(plotTop + 20 + legendEvery*i)
		fmt.Fprintf(&svg, "<line x1=\"%d\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"%s\" stroke-width=\"3\"/>\n", legendLeft, legendLeft+22, at, at, color)
		text(legendLeft+30, at+4, "start", "%s", s.name)
	}
	svg.WriteString("</svg>\n")
	return svg.Bytes()
}
