package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// maxExpressions is the largest number of comparisons in a query. Windows refuses an XPath of more than 20 expressions
// outside of a structured query ("Consuming Events" on learn.microsoft.com), which would have to be a file on the node.
const maxExpressions = 20

// span is a range of record numbers: those greater than after, up to upTo.
type span struct {
	after uint64
	upTo  uint64 // 0: no limit
}

// arguments returns wevtutil's arguments for the events of a channel in a span. If the events have more IDs than a
// query may have, it returns several queries, which no event matches twice; if no event can match, it returns none.
// The queries contain only numbers and times, and no text of a user.
func (q Query) arguments(s selected, records span) (all [][]string) {
	for _, query := range q.xpaths(s.ids, records) {
		args := []string{"qe", s.channel, "/f:RenderedXml", "/uni:true"}
		if query != "" {
			args = append(args, "/q:"+query)
		}
		if q.newestFirst(records.after) {
			args = append(args, "/rd:true", "/c:"+strconv.Itoa(q.Last))
		}
		all = append(all, args)
	}
	return all
}

// newestFirst reports whether wevtutil must print the newest event first, which is necessary to get
// only the last events. wevtutil prints the events after a known record in the order in which they
// were logged. With Wants, it prints all events in this order, and swdt selects the last ones.
func (q Query) newestFirst(after uint64) bool { return after == 0 && q.Last > 0 && q.Wants == nil }

// xpaths returns conditions on the System element of events, "" if all events are wanted. Together they select the
// events of the query. The conditions use only the part of XPath 1.0 that the event log supports.
func (q Query) xpaths(groupIDs []int, records span) (all []string) {
	others, expressions := q.conditions(records)
	ids := wantedIDs(groupIDs, q.IDs)
	switch {
	case len(groupIDs) == 0 && len(q.IDs) == 0:
		return []string{system(others)}
	case len(ids) == 0:
		return nil
	}
	for some := range slices.Chunk(ids, maxExpressions-expressions) {
		all = append(all, system(append([]string{anyOf("EventID", some)}, others...)))
	}
	return all
}

// wantedIDs returns the IDs that both lists have, each once. A list without IDs stands for all IDs.
func wantedIDs(groupIDs, ids []int) []int {
	wanted := slices.Clone(ids)
	switch {
	case len(ids) == 0:
		wanted = slices.Clone(groupIDs)
	case len(groupIDs) > 0:
		wanted = slices.DeleteFunc(wanted, func(id int) bool { return !slices.Contains(groupIDs, id) })
	}
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

func system(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return "*[System[" + strings.Join(conditions, " and ") + "]]"
}

// conditions returns the conditions other than those on IDs, and the number of their expressions.
func (q Query) conditions(records span) (all []string, expressions int) {
	if levels := windowsLevels(q.Level); len(levels) > 0 {
		all, expressions = append(all, anyOf("Level", levels)), len(levels)
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
	expressions += len(times)
	if records.after > 0 {
		all = append(all, fmt.Sprintf("EventRecordID>%d", records.after))
		expressions++
	}
	if records.upTo > 0 {
		all = append(all, fmt.Sprintf("EventRecordID<=%d", records.upTo))
		expressions++
	}
	return all, expressions
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
