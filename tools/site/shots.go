package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// pictured are the pages of which shots takes pictures, by the pictures' names.
var pictured = []struct{ name, path string }{
	{"front", "/"},
	{"index", "/docs/"},
	{"push", "/docs/guides/push/"},
	{"session", "/docs/guides/session/"},
	{"architecture", "/docs/architecture/"},
	{"commands", "/docs/reference/commands/"},
}

// widths are those of a telephone and of a desk.
var widths = []int64{400, 1400}

const (
	height    = 1200
	shotLimit = 5 * time.Minute
)

// shots opens the pages of a built site in Chromium and writes their pictures to a folder. It fails if
// a page is wider than its window or fetches from another server, or if the search finds nothing.
func shots(ctx context.Context, site, out string) error {
	browser, err := chromium()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, shotLimit)
	defer cancel()
	ctx, stop := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(browser), chromedp.NoFirstRun,
		chromedp.Flag("headless", true), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true))
	defer stop()
	ctx, closeTab := chromedp.NewContext(ctx)
	defer closeTab()

	var abroad strangers
	abroad.home = server.URL
	if err := chromedp.Listen(ctx, abroad.note); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	var problems []error
	for _, page := range pictured {
		for _, width := range widths {
			file := filepath.Join(out, fmt.Sprintf("%s-%d.png", page.name, width))
			if err := shoot(ctx, server.URL+page.path, width, file); err != nil {
				problems = append(problems, fmt.Errorf("%s in %d pixels: %w", page.path, width, err))
			}
		}
	}
	problems = append(problems, search(ctx, server.URL+"/", filepath.Join(out, "search-1400.png")), abroad.problem())
	return errors.Join(problems...)
}

// chromium returns the path of Chromium under one of its names, such as Ubuntu's.
func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium here: scripts/install-test-deps.sh installs it")
}

// shoot writes the picture of a page, and checks that the page fits into its width.
func shoot(ctx context.Context, address string, width int64, file string) error {
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(address)); err != nil {
		return err
	}
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.documentElement.scrollWidth`))
	if err != nil {
		return err
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		return err
	}
	if wide > float64(width) {
		return fmt.Errorf("it is %v wide", wide)
	}
	return nil
}

// search types a word into the site's search and waits for the first result.
func search(ctx context.Context, address, file string) error {
	const query, input = "rollback", `input[data-md-component="search-query"]`
	err := chromedp.Do(ctx, chromedp.EmulateViewport(1400, height), chromedp.Navigate(address),
		chromedp.Click(input), chromedp.SendKeys(input, query), chromedp.WaitVisible(`a.md-search-result__link`))
	if err != nil {
		return fmt.Errorf("search for %q: %w", query, err)
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}

// strangers records requests to other servers than the site's own.
type strangers struct {
	home  string
	mutex sync.Mutex
	urls  []string
}

func (s *strangers) note(event any) {
	e, ok := event.(*network.EventRequestWillBeSent)
	if !ok {
		return
	}
	u, err := url.Parse(e.Request.URL)
	if err == nil && (u.Scheme == "data" || u.Scheme == "blob" || u.Scheme+"://"+u.Host == s.home) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.urls = append(s.urls, e.Request.URL)
}

func (s *strangers) problem() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.urls) > 0 {
		return fmt.Errorf("the pages fetch from other servers: %v", s.urls)
	}
	return nil
}
