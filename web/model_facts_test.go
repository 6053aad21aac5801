package web

import (
	"net/url"
	"testing"

	"weir/models"
)

// What is deployed from the page of a model is planned anew when the model changes: the plan of today
// is no number of parts that somebody has requested.
func TestDeployLeavesPartsOpen(t *testing.T) {
	v := sampleModel(sampleFiles(), true)
	v.Report.Memory.Context = 2048
	v.Form.Values["service_type"], v.Form.Values["cores"] = "sequential", "50"
	link, err := url.Parse(string(v.deployURL()))
	if err != nil {
		t.Fatal(err)
	}
	q := link.Query()
	if q.Has("parts") || q.Get("context") != "2048" || q.Get("batch") != "1" || q.Get("cores") != "50" || q.Get("service_type") != "sequential" || q.Get("path") == "" {
		t.Error(link)
	}
	v.Report.NotServed = models.Say("It has other weights.")
	if link := v.deployURL(); link != "" {
		t.Error(link)
	}
}
