package scale

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// DefaultServices and DefaultEndpoints are the numbers for which SIG Windows published times.
	DefaultServices, DefaultEndpoints = 2000, 5000
	// DefaultChanges is the default number of endpoints that are replaced.
	DefaultChanges = 100
	// MostServices and MostEndpoints bound a load. A node sends the documents of all endpoints in one
	// message, which has a largest size.
	MostServices, MostEndpoints = 10_000, 10_000
	// DefaultRange has the addresses of the endpoints: the range for benchmarks of RFC 2544, which no
	// network routes.
	DefaultRange = "198.18.0.0/15"
	// sliceSize is the largest number of endpoints of a slice, as that of Kubernetes' own controller.
	sliceSize = 100
	// servicePort and targetPort are the ports of each Service and of each endpoint.
	servicePort, targetPort = 80, 8080

	managedBy, manager = "app.kubernetes.io/managed-by", "swdt"
	portName           = "http"
)

// Load is the number of objects of a run.
type Load struct {
	Services int `json:"services"`
	// Endpoints is the number of endpoints of all Services together, at least one for each Service.
	Endpoints int `json:"endpoints"`
	// Changes is the number of Services of which one endpoint is replaced once all are programmed.
	Changes int `json:"changes"`
	// Range has the addresses of the endpoints, as a prefix.
	Range string `json:"range"`
}

// LoadError reports a load that is not possible.
type LoadError struct{ Problem string }

func (e *LoadError) Error() string { return e.Problem }

// Check returns a *LoadError if the load is not possible.
func (l Load) Check() error {
	wrong := func(format string, args ...any) error { return &LoadError{fmt.Sprintf(format, args...)} }
	prefix, err := netip.ParsePrefix(l.Range)
	switch {
	case l.Services < 1 || l.Services > MostServices:
		return wrong("--services %d: use a number from 1 to %d", l.Services, MostServices)
	case l.Endpoints < l.Services:
		return wrong("--endpoints %d: each of the %d Services needs at least one", l.Endpoints, l.Services)
	case l.Endpoints > MostEndpoints:
		return wrong("--endpoints %d: use at most %d", l.Endpoints, MostEndpoints)
	case l.Changes < 0 || l.Changes > l.Services:
		return wrong("--changes %d: use a number from 0 to that of --services, %d", l.Changes, l.Services)
	case err != nil:
		return wrong("--range %s: write a prefix, such as %s", l.Range, DefaultRange)
	case prefix.Addr().Is4In6() || prefix.Addr().IsLoopback() || prefix.Addr().IsMulticast() ||
		prefix.Addr().IsLinkLocalUnicast() || prefix.Addr().IsUnspecified():
		return wrong("--range %s: endpoints cannot have such addresses; the default is %s", l.Range, DefaultRange)
	case !prefix.Contains(l.address(l.Endpoints + l.Changes)):
		return wrong("--range %s is too small for %d addresses", l.Range, l.Endpoints+l.Changes)
	}
	return nil
}

// address returns the address number n of the range, which counts from 0; the first address of the range
// is left out.
func (l Load) address(n int) netip.Addr {
	prefix, err := netip.ParsePrefix(l.Range)
	if err != nil {
		return netip.Addr{}
	}
	bytes := prefix.Masked().Addr().AsSlice()
	for i, carry := len(bytes)-1, n+1; i >= 0 && carry > 0; i-- {
		carry += int(bytes[i])
		bytes[i], carry = byte(carry), carry>>8
	}
	found, _ := netip.AddrFromSlice(bytes)
	return found
}

// endpoints returns the addresses of a Service's endpoints. Services count from 0.
func (l Load) endpoints(service int) []netip.Addr {
	each, more := l.Endpoints/l.Services, l.Endpoints%l.Services
	first := service*each + min(service, more)
	count := each
	if service < more {
		count++
	}
	all := make([]netip.Addr, 0, count)
	for n := range count {
		all = append(all, l.address(first+n))
	}
	return all
}

// changed returns the Service of the change number n, which counts from 0, and its new address. The
// changed Services are spread evenly.
func (l Load) changed(n int) (service int, address netip.Addr) {
	return n * l.Services / l.Changes, l.address(l.Endpoints + n)
}

// slices returns the number of EndpointSlices of all Services.
func (l Load) slices() int {
	total := 0
	for i := range l.Services {
		total += (len(l.endpoints(i)) + sliceSize - 1) / sliceSize
	}
	return total
}

func (l Load) String() string {
	text := fmt.Sprintf("%d Services with %d endpoints", l.Services, l.Endpoints)
	if l.Changes > 0 {
		text += fmt.Sprintf(", and %d changes", l.Changes)
	}
	return text
}

// serviceName returns the name of a Service, which counts from 0.
func serviceName(service int) string { return fmt.Sprintf("service-%05d", service+1) }

func newService(namespace string, service int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceName(service),
			Labels: map[string]string{managedBy: manager}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: portName, Port: servicePort,
			Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(targetPort)}}},
	}
}

// newSlices returns the EndpointSlices of a Service with these endpoints.
func newSlices(namespace string, service int, addresses []netip.Addr) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	yes, protocol, name, port := true, corev1.ProtocolTCP, portName, int32(targetPort)
	kind := discoveryv1.AddressTypeIPv4
	if addresses[0].Is6() {
		kind = discoveryv1.AddressTypeIPv6
	}
	for begin := 0; begin < len(addresses); begin += sliceSize {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
				Name: fmt.Sprintf("%s-%d", serviceName(service), len(all)+1),
				Labels: map[string]string{managedBy: manager, discoveryv1.LabelServiceName: serviceName(service),
					discoveryv1.LabelManagedBy: "swdt.dev"}},
			AddressType: kind,
			Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &port}},
		}
		for _, address := range addresses[begin:min(begin+sliceSize, len(addresses))] {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()},
				Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes}})
		}
		all = append(all, slice)
	}
	return all
}
