// Package browsertest lets tests open the product's pages in Chromium, as a user does.
package browsertest

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is a file that a new Chromium shows.
type Page struct {
	t       *testing.T
	ctx     context.Context
	address string

	mutex               sync.Mutex
	fetched, complaints []string
}

// Open opens a file in a window of a size in pixels. The browser ends with the test. Open skips the
// test if Chromium is missing; scripts/install-test-deps.sh installs Chromium.
func Open(t *testing.T, file string, width, height int) *Page {
	t.Helper()
	path := browser()
	if path == "" {
		t.Skip("no chromium here: scripts/install-test-deps.sh installs it")
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), // the cleanup ends the browser
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun,
		chromedp.Flag("headless", true), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(2*time.Minute))
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits until the browser has ended
			t.Log(err)
		}
		cancel()
	})
	p := &Page{t: t, ctx: ctx, address: (&url.URL{Scheme: "file", Path: file}).String()}
	if err := chromedp.Listen(ctx, p.note); err != nil {
		t.Fatal(err)
	}
	send(p, network.Enable, network.EnableParams{})
	send(p, log.Enable, cdp.Empty{})
	send(p, runtime.Enable, cdp.Empty{})
	Do(p, chromedp.Navigate(p.address))
	return p
}

// browser returns the path of Chromium under one of its names, such as Ubuntu's, or "" if it is missing.
func browser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// note records the requests of the page and the errors that the browser reports.
func (p *Page) note(event any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.fetched = append(p.fetched, e.Request.URL)
	case *log.EventEntryAdded:
		p.complaints = append(p.complaints, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		p.complaints = append(p.complaints, "console."+string(e.Type))
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, e.ExceptionDetails.Text)
	}
}

func send[P, R any](p *Page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, command, params); err != nil {
		p.t.Fatal(err)
	}
}

// Do makes the browser carry out an action and returns its result.
func Do[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	result, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// Eval runs a script in the page and returns its result.
func Eval[T any](p *Page, script string) T {
	p.t.Helper()
	return Do(p, chromedp.Evaluate[T](script))
}

// LooksRight checks that the page is dark if the user prefers dark, that each text contrasts with its background in
// light and in dark, that the page fits on a phone, that it has fetched nothing except its own file, and that the
// browser has reported no errors. A test calls LooksRight last. If SWDT_SCREENSHOT is set, LooksRight writes a
// screenshot to the file of that name.
func (p *Page) LooksRight() {
	p.t.Helper()
	picture := Do(p, chromedp.FullScreenshot(100))
	p.fits()
	for _, scheme := range []struct{ name, background string }{
		{"light", "rgb(255, 255, 255)"}, {"dark", "rgb(21, 25, 29)"},
	} {
		media := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme.name}}
		send(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: media})
		if back := Eval[string](p, `getComputedStyle(document.body).backgroundColor`); back != scheme.background {
			p.t.Errorf("its background in the scheme %s is %s", scheme.name, back)
		}
		for _, text := range Eval[[]string](p, faintTexts) {
			p.t.Errorf("in the scheme %s: %s", scheme.name, text)
		}
	}
	Do(p, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	p.fits()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.fetched) != 1 || p.fetched[0] != p.address {
		p.t.Errorf("it fetched %v, want only %s", p.fetched, p.address)
	}
	if len(p.complaints) > 0 {
		p.t.Errorf("the browser complains: %v", p.complaints)
	}
	if path := os.Getenv("SWDT_SCREENSHOT"); path != "" {
		if err := os.WriteFile(path, picture, 0o644); err != nil {
			p.t.Error(err)
		}
	}
}

// fits checks that the page is not wider than the window.
func (p *Page) fits() {
	p.t.Helper()
	if wide, width := Eval[float64](p, `document.documentElement.scrollWidth`),
		Eval[float64](p, `document.documentElement.clientWidth`); wide > width {
		p.t.Errorf("it is %v pixels wide, and the window %v", wide, width)
	}
}

// faintTexts is a script that returns a line for each text that contrasts too little with its background: less than
// 4.5, or 3 if the text is large, as WCAG 2.2 computes it (level AA). It opens all details first.
const faintTexts = `(() => {
	document.querySelectorAll("details").forEach(d => d.open = true);
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const parse = colour => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = colour;
		canvas.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	};
	const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
	const luminance = c => {
		const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const background = e => {
		if (!e) return [255, 255, 255, 1];
		return over(parse(getComputedStyle(e).backgroundColor), background(e.parentElement));
	};
	const opacity = e => e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1;
	const found = new Map();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement, style = getComputedStyle(e);
		if (!walker.currentNode.data.trim() || style.visibility != "visible" || !e.getClientRects().length ||
			e.closest("script, style, title")) continue;
		const back = background(e), ink = parse(e instanceof SVGElement ? style.fill : style.color);
		ink[3] *= opacity(e);
		const [a, b] = [luminance(over(ink, back)), luminance(back)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
		const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
		if (ratio < (large ? 3 : 4.5)) {
			const name = e.tagName + "." + (e.getAttribute("class") || "");
			found.set(name, name + " has a contrast of " + ratio.toFixed(2) + ": " + walker.currentNode.data.slice(0, 40));
		}
	}
	return [...found.values()];
})()`
