package programmed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/inspect/programmed"
	"github.com/swdt-dev/swdt/internal/ui"
)

// services returns an API server with the Services shop/web and shop/api.
func services() *fake.Clientset {
	of := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	return fake.NewClientset(of("web"), of("api"))
}

// failPatches makes patches of a Service fail from the first-th to the last-th, counted from 1. If stored is true, the API
// server has stored the change before its answer is lost.
func failPatches(client *fake.Clientset, first, last int, stored bool) {
	count := 0
	client.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
		count++
		if count < first || count > last {
			return false, nil, nil
		}
		if stored {
			if _, _, err := clienttesting.ObjectReaction(client.Tracker())(action); err != nil {
				return true, nil, err
			}
		}
		return true, nil, errors.New("the answer is lost")
	})
}

func touchOf(services ...string) (plan []programmed.Repair) {
	for _, name := range services {
		plan = append(plan, programmed.Repair{Action: programmed.TouchService, Service: name, Result: programmed.WouldRepair})
	}
	return plan
}

func annotationOf(t *testing.T, client *fake.Clientset, name string) (value string, ok bool) {
	t.Helper()
	s, err := client.CoreV1().Services("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value, ok = s.Annotations["winProxyOptimization"]
	return value, ok
}

func patches(client *fake.Clientset) (count int) {
	for _, action := range client.Actions() {
		if action.GetVerb() == "patch" {
			count++
		}
	}
	return count
}

// TestTouchRestoresTheAnnotation checks that the annotation is as before, also if the answer to the first change is lost.
func TestTouchRestoresTheAnnotation(t *testing.T) {
	for name, stored := range map[string]bool{"the change was stored": true, "the change was not stored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := services()
				failPatches(client, 1, 1, stored)
				done, err := programmed.Touch(t.Context(), client, programmed.Options{Settle: time.Second}, touchOf("shop/web"), nil, ui.Discard{})
				if value, ok := annotationOf(t, client, "web"); ok {
					t.Errorf("the annotation is %q", value)
				}
				if err == nil || done[0].Result != programmed.Failed {
					t.Errorf("%+v: %v", done, err)
				}
			})
		})
	}
}

// TestTouchNamesTheCommandThatRestores checks the error if the annotation cannot be changed back.
func TestTouchNamesTheCommandThatRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := services()
		failPatches(client, 2, 2, false)
		_, err := programmed.Touch(t.Context(), client, programmed.Options{Settle: time.Second}, touchOf("shop/web"), nil, ui.Discard{})
		want := "`kubectl annotate service --overwrite -n shop web winProxyOptimization-`"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestTouchAfterAnInterruption checks that a Service of which an object was removed is touched after Ctrl-C, with the wait
// between both changes, and no other one.
func TestTouchAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client, begun := services(), time.Now()
		removals := []programmed.Repair{{Service: "shop/web", Action: programmed.RemoveBalancer, Result: programmed.Repaired}}
		done, _ := programmed.Touch(ctx, client, programmed.Options{Settle: time.Second}, touchOf("shop/web", "shop/api"), removals, ui.Discard{})
		if results := []string{done[0].Result, done[1].Result}; !slices.Equal(results, []string{programmed.Repaired, programmed.Skipped}) {
			t.Errorf("results %q", results)
		}
		if value, ok := annotationOf(t, client, "web"); ok || patches(client) != 2 || time.Since(begun) < time.Second {
			t.Errorf("the annotation is %q after %d changes and %s", value, patches(client), time.Since(begun))
		}
	})
}

// TestTouchSkipsAServiceWithItsObject checks that a Service whose wrong object remains is not touched: kube-proxy makes no
// load balancer that exists.
func TestTouchSkipsAServiceWithItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := services()
		removals := []programmed.Repair{{Service: "shop/web", Action: programmed.RemoveBalancer, Result: programmed.Skipped}}
		done, err := programmed.Touch(t.Context(), client, programmed.Options{}, touchOf("shop/web", "shop/api"), removals, ui.Discard{})
		if err != nil || done[0].Result != programmed.Skipped || done[1].Result != programmed.Repaired || patches(client) != 2 {
			t.Errorf("%+v: %v, %d changes", done, err, patches(client))
		}
	})
}
