package rollout

import (
	"fmt"
	"slices"
	"time"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// window reports whether now is within w, and when that changes, in the time zone of w. Without a window, that never
// changes: change is zero. The error reports a time zone that this machine does not know.
func window(w *fleetv1.Window, now time.Time) (open bool, change time.Time, err error) {
	if w == nil {
		return true, time.Time{}, nil
	}
	zone, err := zoneOf(w)
	if err != nil {
		return false, time.Time{}, err
	}
	now = now.In(zone)
	for day := -1; day <= 7; day++ { // from the window that may have begun yesterday to the same day of the next week
		begin, end := span(w, now, day)
		switch {
		case !begins(w, begin), !now.Before(end):
		case now.Before(begin):
			return false, begin, nil
		default:
			return true, end, nil
		}
	}
	return false, time.Time{}, nil
}

// CheckWindow returns an error for a time zone that this machine does not know.
func CheckWindow(w *fleetv1.Window) error {
	if w == nil {
		return nil
	}
	_, err := zoneOf(w)
	return err
}

func zoneOf(w *fleetv1.Window) (*time.Location, error) {
	if w.TimeZone == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("spec.window.timeZone: %w; use a name such as Europe/Berlin", err)
	}
	return zone, nil
}

// span returns the window that begins on the day of now plus that many days.
func span(w *fleetv1.Window, now time.Time, day int) (begin, end time.Time) {
	begin = at(now, day, w.Start)
	end = at(now, day, w.End)
	if !end.After(begin) {
		end = at(now, day+1, w.End)
	}
	return begin, end
}

// at returns a time of day, such as 22:00, of the day of now plus that many days.
func at(now time.Time, day int, clock string) time.Time {
	var hour, minute int
	fmt.Sscanf(clock, "%d:%d", &hour, &minute) // the schema has checked the form
	return time.Date(now.Year(), now.Month(), now.Day()+day, hour, minute, 0, 0, now.Location())
}

func begins(w *fleetv1.Window, begin time.Time) bool {
	return len(w.Days) == 0 || slices.Contains(w.Days, fleetv1.Day(begin.Weekday().String()[:3]))
}
