package ui

import (
	"fmt"
	"sync"
	"time"
)

// counter counts a transfer and estimates its rate and remaining time.
type counter struct {
	now   func() time.Time
	label string
	total int64 // 0 or less: unknown
	begun time.Time

	mutex sync.Mutex // The callers of the methods below hold this mutex.
	done  int64
	ended time.Time

	// rate and eta use only the samples of the last few seconds: a link's speed changes, and
	// the first megabytes only fill buffers.
	window []sample
}

type sample struct {
	at   time.Time
	done int64
}

const rateWindow = 5 * time.Second

func newCounter(now func() time.Time, label string, total int64) *counter {
	begun := now()
	return &counter{now: now, label: label, total: total, begun: begun, window: []sample{{at: begun}}}
}

func (c *counter) add(n int64) time.Time {
	now := c.now()
	c.done += n
	last := c.window[len(c.window)-1]
	if now.Sub(last.at) >= rateWindow/20 {
		c.window = append(c.window, sample{now, c.done})
	}
	for len(c.window) > 2 && now.Sub(c.window[0].at) > rateWindow {
		c.window = c.window[1:]
	}
	return now
}

// end marks the transfer as ended, and returns false if it had ended before.
func (c *counter) end() bool {
	if !c.ended.IsZero() {
		return false
	}
	c.ended = c.now()
	return true
}

// rate returns bytes per second; 0 while unknown.
func (c *counter) rate(now time.Time) float64 {
	first := c.window[0]
	span := now.Sub(first.at).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(c.done-first.done) / span
}

// eta returns the remaining time; false while unknown.
func (c *counter) eta(now time.Time) (time.Duration, bool) {
	rate := c.rate(now)
	if rate <= 0 || c.total <= 0 || now.Sub(c.begun) < time.Second/2 {
		return 0, false
	}
	left := float64(max(c.total-c.done, 0)) / rate
	if left > (24 * time.Hour).Seconds() {
		return 0, false
	}
	return time.Duration(left * float64(time.Second)), true
}

// text returns the progress of the transfer: kubelet.exe 41% of 83.6 MB, 12.3 MB/s, 4s left.
func (c *counter) text(now time.Time) string {
	out := c.label + " " + Size(c.done)
	if c.total > 0 {
		out = fmt.Sprintf("%s %d%% of %s", c.label, min(100, c.done*100/c.total), Size(c.total))
	}
	if rate := c.rate(now); rate > 0 {
		out += ", " + Size(int64(rate)) + "/s"
	}
	if left, ok := c.eta(now); ok {
		out += ", " + Age(left.Round(time.Second)) + " left"
	}
	return out
}

// summary returns the result of the transfer as text.
func (c *counter) summary() string {
	took := c.ended.Sub(c.begun)
	if c.total > 0 && c.done < c.total {
		return fmt.Sprintf("%s stopped at %s of %s", c.label, Size(c.done), Size(c.total))
	}
	return fmt.Sprintf("%s done, %s in %s", c.label, Size(c.done), Seconds(took))
}
