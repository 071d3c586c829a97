package join_test

import (
	"testing"
)

func TestFromABareMachineToAReadyNodeAndNoFurther(t *testing.T) {
	l := newLab(t)
	results := l.mustJoin()
	t.Logf("\n%s", table(results))
	l.isReady()
	again, err := l.join()
	nothing(t, again, err)
}
