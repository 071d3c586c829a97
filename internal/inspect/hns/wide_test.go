package hns

import (
	"strings"
	"testing"
)

func TestAWideTableHasAllBackendsAndWholeIDs(t *testing.T) {
	const id = "A5BB12F9-E2BE-AD44-8823-B6644ADC04DD"
	balancer := LoadBalancer{ID: id, Endpoints: []string{"1-a", "2-a", "3-a", "4-a", "5-a", "6-a"}}
	view := View{State: State{LoadBalancers: []LoadBalancer{balancer}}}
	row := strings.Join(view.LoadBalancers().Rows[0], " ")
	view.Wide = true
	wide := strings.Join(view.LoadBalancers().Rows[0], " ")
	if !strings.Contains(row, "3 more") || strings.Contains(row, id) {
		t.Errorf("the table has %s", row)
	}
	switch {
	case strings.Contains(wide, "more"):
		t.Errorf("wide contains %q:\n%s", "more", wide)
	case !strings.Contains(wide, "6-a"):
		t.Errorf("wide lacks %q:\n%s", "6-a", wide)
	case !strings.Contains(wide, id):
		t.Errorf("wide lacks %q:\n%s; the wide table has %s", id, wide, wide)
	}
}
