package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// logAnnotation has the output of all containers of a pod.
const logAnnotation = "simulated.swdt.dev/log"

// answerLog answers with the output of a pod's containers, which never print more.
func (c *Cluster) answerLog(w http.ResponseWriter, r Request, container string) error {
	resource, _ := c.resource("", "v1", "pods")
	pod, ok := c.store.get(key{"pods", r.Namespace, r.Name})
	if !ok {
		return apierrors.NewNotFound(groupResource(resource), r.Name)
	}
	output, ok := texts(pod, "metadata", "annotations")[logAnnotation]
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q has printed nothing", container, r.Name))
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, output) // the client may be gone
	return nil
}

const budgets = "poddisruptionbudgets.policy"

// evict deletes a pod unless that violates a PodDisruptionBudget: 429 with the cause DisruptionBudget
// (pkg/registry/core/pod/storage/eviction.go; pkg/controller/disruption computes the budget).
func (c *Cluster) evict(k key, eviction object) (any, error) {
	r, _ := c.resource("", "v1", "pods")
	pod, ok := c.store.get(k)
	if !ok {
		return nil, apierrors.NewNotFound(groupResource(r), k.name)
	}
	if !finished(pod) {
		if err := c.disrupt(k.namespace, pod); err != nil {
			return nil, err
		}
	}
	var options metav1.DeleteOptions
	if wanted, ok := eviction["deleteOptions"]; ok {
		data, err := json.Marshal(wanted)
		if err == nil {
			err = json.Unmarshal(data, &options)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if err := c.remove(r, k, options); err != nil {
		return nil, err
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: 201}, nil
}

// disrupt returns an error if a PodDisruptionBudget does not allow the eviction of the pod.
func (c *Cluster) disrupt(namespace string, pod object) error {
	all, _ := c.store.list(budgets, namespace)
	for _, budget := range all {
		if !selects(budget, pod) {
			continue
		}
		healthy, needed := c.budget(namespace, budget)
		if healthy > needed {
			continue
		}
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: "DisruptionBudget",
			Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
				text(budget, "metadata", "name"), needed, healthy),
		})
		return err
	}
	return nil
}

// budget returns how many pods of a PodDisruptionBudget are healthy, and how many of them
// must be healthy.
func (c *Cluster) budget(namespace string, budget object) (healthy, needed int) {
	pods, _ := c.store.list("pods", namespace)
	expected := 0
	for _, pod := range pods {
		if !selects(budget, pod) || finished(pod) {
			continue
		}
		expected++
		// If a test plants a pod without a status, the pod counts as running.
		if state := condition(pod, "Ready"); state == nil || state["status"] == "True" {
			if field(pod, "metadata", "deletionTimestamp") == nil {
				healthy++
			}
		}
	}
	if minimum := field(budget, "spec", "minAvailable"); minimum != nil {
		return healthy, share(minimum, expected)
	}
	if maximum := field(budget, "spec", "maxUnavailable"); maximum != nil {
		return healthy, expected - share(maximum, expected)
	}
	return healthy, 0
}

// share returns value if it is a number. If it is a percentage, share returns that percentage of
// all, rounded up.
func share(value any, all int) int {
	text := fmt.Sprint(value)
	percent, ok := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(percent)
	if err != nil {
		return 0
	}
	if !ok {
		return n
	}
	return (n*all + 99) / 100
}

func selects(budget, pod object) bool {
	data, err := json.Marshal(field(budget, "spec", "selector"))
	if err != nil {
		return false
	}
	var wanted *metav1.LabelSelector
	if json.Unmarshal(data, &wanted) != nil {
		return false
	}
	matches, err := metav1.LabelSelectorAsSelector(wanted)
	return err == nil && matches.Matches(labels.Set(texts(pod, "metadata", "labels")))
}

func finished(pod object) bool {
	phase := text(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// lingers reports whether a deleted pod remains in the store until its grace period ends.
func (c *Cluster) lingers(k key, options metav1.DeleteOptions) bool {
	pod, ok := c.store.get(k)
	now := options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0
	return ok && c.options.PodGrace > 0 && !now && !finished(pod) && text(pod, "spec", "nodeName") != ""
}

// terminate marks a pod as deleted, and removes it when its grace period ends.
func (c *Cluster) terminate(r Resource, k key, options metav1.DeleteOptions) error {
	began := false
	pod, err := c.store.update(r, k, func(o object) (object, error) {
		if meta := metadata(o); meta["deletionTimestamp"] == nil {
			began, meta["deletionTimestamp"] = true, timestamp(c.now().Add(c.options.PodGrace))
		}
		return o, nil
	})
	if err != nil || !began || !c.begin() {
		return err
	}
	uid := text(pod, "metadata", "uid")
	go func() {
		defer c.running.Done()
		timer := time.NewTimer(c.options.PodGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
		_, _ = c.store.update(r, k, func(o object) (object, error) {
			if text(o, "metadata", "uid") != uid {
				return o, nil
			}
			return nil, nil
		})
	}()
	return nil
}
