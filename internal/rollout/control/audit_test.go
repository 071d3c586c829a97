package control_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// requests are the requests of one user, as the API server has recorded them.
type requests struct {
	total int
	// kinds counts them by verb and resource, such as "patch nodestates".
	kinds map[string]int
	// whole counts those that made the API server send all objects of a kind.
	whole int
}

// requests returns the requests of a user after the first skipped records, and the number of all records.
func (l *lab) requests(user string, skip int) (r requests, records int) {
	l.t.Helper()
	file, err := os.Open(l.plane.AuditLog())
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	r.kinds = map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for ; lines.Scan(); records++ {
		var record auditRecord
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			l.t.Fatal(err)
		}
		if records >= skip && record.User.Username == user && record.counts() {
			r.total++
			r.kinds[record.kind()]++
			if record.whole() {
				r.whole++
			}
		}
	}
	if err := lines.Err(); err != nil {
		l.t.Fatal(err)
	}
	return r, records
}

type auditRecord struct {
	Stage, Verb, RequestURI string
	User                    struct{ Username string }
	ObjectRef               struct{ Resource, Subresource string }
}

// counts reports whether the record is the first or only one of its request: a watch has another at its end.
func (r auditRecord) counts() bool {
	return r.Verb != "watch" || r.Stage == "ResponseStarted"
}

func (r auditRecord) kind() string {
	if r.ObjectRef.Resource == "" {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return r.Verb + " " + path
	}
	return strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// whole reports whether the answer has all objects of a kind: a list that is not limited to one node, or a
// watch that begins with all objects.
func (r auditRecord) whole() bool {
	return r.Verb == "list" && !strings.Contains(r.RequestURI, "fieldSelector=") ||
		r.Verb == "watch" && strings.Contains(r.RequestURI, "sendInitialEvents=true")
}

// String returns the kinds, the most frequent first.
func (r requests) String() string {
	var lines []string
	for _, kind := range slices.SortedFunc(maps.Keys(r.kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.kinds[b], r.kinds[a]), cmp.Compare(a, b))
	}) {
		lines = append(lines, fmt.Sprintf("%d %s", r.kinds[kind], kind))
	}
	return strings.Join(lines, "\n")
}
