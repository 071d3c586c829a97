package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// arguments returns wevtutil's arguments for the events of a channel with record numbers greater
// than after. The query contains only numbers and times, and no text of a user.
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

// newestFirst reports whether wevtutil must print the newest event first, which is necessary to get
// only the last events. wevtutil prints the events after a known record in the order in which they
// were logged. With Wants, it prints all events in this order, and swdt selects the last ones.
func (q Query) newestFirst(after uint64) bool { return after == 0 && q.Last > 0 && q.Wants == nil }

// xpath returns a condition on the System element of events, or "" if all events are wanted. The
// condition uses only the part of XPath 1.0 that the event log supports.
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

// windowsLevels returns Windows' numbers for the minimum level and all worse levels, or nil if all
// levels are wanted. Events with level 0 are always logged, and count as information.
func windowsLevels(minimum logline.Level) []int {
	switch minimum {
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
