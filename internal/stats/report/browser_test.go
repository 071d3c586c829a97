package report_test

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a context with a new Chromium, and what it fetched and complained
// of. Scripts/install-test-deps.sh installs it.
func browser(t *testing.T) (ctx context.Context, seen func() (fetched, complaints []string)) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: scripts/install-test-deps.sh installs it")
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), // ended by the cleanup, which waits for it
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun,
		chromedp.Flag("headless", true), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WindowSize(1100, 900), chromedp.WSURLReadTimeout(2*time.Minute),
	)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits until it has ended
			t.Log(err)
		}
		cancel()
	})
	var mu sync.Mutex
	var fetched, complaints []string
	err = chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			fetched = append(fetched, e.Request.URL)
		case *log.EventEntryAdded:
			complaints = append(complaints, e.Entry.Text)
		case *runtime.EventConsoleAPICalled:
			complaints = append(complaints, "console."+string(e.Type))
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(t, ctx, network.Enable, network.EnableParams{})
	call(t, ctx, log.Enable, cdp.Empty{})
	call(t, ctx, runtime.Enable, cdp.Empty{})
	return ctx, func() ([]string, []string) {
		mu.Lock()
		defer mu.Unlock()
		return fetched, complaints
	}
}

func call[P, R any](t *testing.T, ctx context.Context, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		t.Fatal(err)
	}
}

func run[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func eval[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	return run(t, ctx, chromedp.Evaluate[T](script))
}

// TestInABrowser looks at the page as a person would: whether it renders, whether
// pointing at a chart shows its numbers, on a wide screen and on a phone, in light
// and dark. With SWDT_SCREENSHOT it leaves a picture there.
func TestInABrowser(t *testing.T) {
	ctx, seen := browser(t)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, story(t), 0o644); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: file}).String()
	run(t, ctx, chromedp.Navigate(address))
	charts := eval[int](t, ctx, `document.querySelectorAll("figure svg .reported").length`)
	faults := eval[int](t, ctx, `document.querySelectorAll("figure svg .fault").length`)
	middle := eval[[]float64](t, ctx, `(() => { const s = document.querySelector("figure svg"); s.scrollIntoView({block: "center"});
		const b = s.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()`)
	run(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, middle[0], middle[1]))
	tip := eval[string](t, ctx, `[...document.querySelectorAll(".tip")].filter(t => getComputedStyle(t).visibility === "visible").map(t => t.textContent).join("|")`)
	picture := run(t, ctx, chromedp.FullScreenshot(100))
	dark := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: dark})
	back := eval[string](t, ctx, `getComputedStyle(document.body).backgroundColor`)
	run(t, ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	wide := eval[float64](t, ctx, `document.documentElement.scrollWidth`)
	width := eval[float64](t, ctx, `document.documentElement.clientWidth`)
	fetched, complaints := seen()
	if len(fetched) != 1 || fetched[0] != address {
		t.Errorf("it fetched %v, want only %s", fetched, address)
	}
	if len(complaints) > 0 {
		t.Errorf("the browser complains: %v", complaints)
	}
	if charts != 2 || faults < 10 {
		t.Errorf("%d charts with %d faults", charts, faults)
	}
	if !strings.Contains(tip, "reported 0.") || !strings.Contains(tip, "computed 0.") || strings.Contains(tip, "|") {
		t.Errorf("pointing at a chart shows %q", tip)
	}
	if back != "rgb(21, 25, 29)" {
		t.Errorf("its background in the dark is %s", back)
	}
	if wide > width {
		t.Errorf("on a phone it is %v wide, and the screen %v", wide, width)
	}
	if path := os.Getenv("SWDT_SCREENSHOT"); path != "" {
		if err := os.WriteFile(path, picture, 0o644); err != nil {
			t.Error(err)
		}
	}
}

func TestThePageIsTheSameEveryTime(t *testing.T) {
	if first, second := story(t), story(t); !bytes.Equal(first, second) {
		t.Error("two pages of the same recording differ")
	}
}
