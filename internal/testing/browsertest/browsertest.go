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
	path, err := exec.LookPath("chromium")
	if err != nil {
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

// LooksRight checks that the page is dark if the user prefers dark, that it fits on a phone, that it
// has fetched nothing except its own file, and that the browser has reported no errors. A test calls
// LooksRight last. If SWDT_SCREENSHOT is set, LooksRight writes a screenshot to the file of that name.
func (p *Page) LooksRight() {
	p.t.Helper()
	picture := Do(p, chromedp.FullScreenshot(100))
	dark := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	send(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: dark})
	if back := Eval[string](p, `getComputedStyle(document.body).backgroundColor`); back != "rgb(21, 25, 29)" {
		p.t.Errorf("its background in the dark is %s", back)
	}
	Do(p, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	if wide, width := Eval[float64](p, `document.documentElement.scrollWidth`),
		Eval[float64](p, `document.documentElement.clientWidth`); wide > width {
		p.t.Errorf("on a phone it is %v wide, and the screen %v", wide, width)
	}
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
