package viapod_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/node/viapod"
)

// The wait goes on while the node pulls the image, and is bounded before and after that, and as a whole.
func TestThePullOfAnImageHasALimitOfItsOwn(t *testing.T) {
	const start, pull = time.Minute, 10 * time.Minute
	for name, test := range map[string]struct {
		pulling, until time.Duration // the pull begins, and ends
		runs           time.Duration // the pod runs; 0: never
		want           string        // "" if it starts
	}{
		"at once":                 {0, 0, time.Second, ""},
		"no pull, too slow":       {0, 0, 2 * time.Minute, "not running after 1m"},
		"a long pull":             {time.Second, 8 * time.Minute, 8*time.Minute + 10*time.Second, ""},
		"too slow after the pull": {time.Second, 5 * time.Minute, 8 * time.Minute, "not running after 1m"},
		"a pull without an end":   {time.Second, time.Hour, 0, "not running after 11m"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.state = waiting("ContainerCreating", "")
				begun, name := time.Now(), ""
				w.client.PrependReactor("get", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
					name = a.(clienttesting.GetAction).GetName()
					live, err := w.client.Tracker().Get(a.GetResource(), a.GetNamespace(), a.(clienttesting.GetAction).GetName())
					if err == nil && test.runs > 0 && time.Since(begun) >= test.runs {
						p := live.(*corev1.Pod).DeepCopy()
						running(p)
						live = p
					}
					return true, live, err
				})
				w.client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					list := &corev1.EventList{}
					for reason, at := range map[string]time.Duration{"Pulling": test.pulling, "Pulled": test.until} {
						if at > 0 && time.Since(begun) >= at {
							list.Items = append(list.Items, corev1.Event{Reason: reason, Type: corev1.EventTypeNormal,
								InvolvedObject: corev1.ObjectReference{Name: name}, LastTimestamp: metav1.NewTime(begun.Add(at))})
						}
					}
					return true, list, nil
				})
				way := w.way(func(o *viapod.Options) { o.StartLimit, o.PullLimit = start, pull })
				_, err := way.Connect(t.Context())
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("after %s: %v, want %q", time.Since(begun), err, test.want)
				}
				way.Leave(t.Context())
			})
		})
	}
}
