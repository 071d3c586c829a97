package join_test

import (
	"testing"
	"testing/synctest"
)

func TestFromABareMachineToAReadyNodeAndNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		results := l.mustJoin()
		t.Logf("\n%s", table(results))
		l.isReady()
		again, err := l.join()
		nothing(t, again, err)
	})
}
