package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/logline"
)

// arguments are wevtutil's for one channel's events after a record. Nothing that
// a person wrote goes into the query: it is made of numbers and times.
func (q Query) arguments(s selected, after uint64) []string {
	args := []string{"qe", s.channel, "/f:RenderedXml", "/uni:true"}
	if query := q.xpath(s.ids, after); query != "" {
		args = append(args, "/q:"+query)
	}
	if q.newestFirst(after) {
		args = append(args, "/rd:true", "/c:"+strconv.Itoa(q.Last))
	}
	return args
}

// newestFirst is for the last events; those that are new come in order.
func (q Query) newestFirst(after uint64) bool { return after == 0 && q.Last > 0 && q.Wants == nil }

// xpath is a condition on System, in the part of XPath 1.0 that the event log has.
func (q Query) xpath(groupIDs []int, after uint64) string {
	var all []string
	for _, ids := range [][]int{groupIDs, q.IDs} {
		if len(ids) > 0 {
			all = append(all, anyOf("EventID", ids))
		}
	}
	if levels := windowsLevels(q.Level); len(levels) > 0 {
		all = append(all, anyOf("Level", levels))
	}
	var times []string
	const format = "2006-01-02T15:04:05.000Z"
	if !q.Since.IsZero() {
		times = append(times, "@SystemTime>='"+q.Since.UTC().Format(format)+"'")
	}
	if !q.Until.IsZero() {
		times = append(times, "@SystemTime<='"+q.Until.UTC().Add(time.Millisecond).Format(format)+"'")
	}
	if len(times) > 0 {
		all = append(all, "TimeCreated["+strings.Join(times, " and ")+"]")
	}
	if after > 0 {
		all = append(all, fmt.Sprintf("EventRecordID>%d", after))
	}
	if len(all) == 0 {
		return ""
	}
	return "*[System[" + strings.Join(all, " and ") + "]]"
}

func anyOf(field string, values []int) string {
	var each []string
	for _, value := range values {
		each = append(each, field+"="+strconv.Itoa(value))
	}
	return "(" + strings.Join(each, " or ") + ")"
}

// windowsLevels are Windows' numbers for a level and worse. 0 is an event that is
// always logged, which is information.
func windowsLevels(least logline.Level) []int {
	switch least {
	case logline.Fatal:
		return []int{1}
	case logline.Error:
		return []int{1, 2}
	case logline.Warning:
		return []int{1, 2, 3}
	case logline.Info:
		return []int{1, 2, 3, 4, 0}
	}
	return nil
}

func levelOf(windows int) logline.Level {
	switch windows {
	case 1:
		return logline.Fatal
	case 2:
		return logline.Error
	case 3:
		return logline.Warning
	case 5:
		return logline.Debug
	}
	return logline.Info
}
