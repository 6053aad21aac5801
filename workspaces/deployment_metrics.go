package workspaces

import (
	"context"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
)

// MetricsSpans are the spans of time of the metrics of a deployment.
var MetricsSpans = []string{"hour", "day", "week", "month", "months"}

// metricsSpan is how many steps a span has, how long each is, and from which stored steps it is added up.
type metricsSpan struct {
	steps  int
	length time.Duration
	stored int64
}

var metricsSpans = map[string]metricsSpan{
	"hour":   {60, time.Minute, stepMinute},
	"day":    {96, 15 * time.Minute, stepQuarter},
	"week":   {168, time.Hour, stepHour},
	"month":  {120, 6 * time.Hour, stepHour},
	"months": {90, 24 * time.Hour, stepHour},
}

// DeploymentMetrics returns the metrics of the requests to a deployment in the last hour, day, week, month of 30
// days, or months of 90 days. All deployments that have followed one another have the same.
func (s *Service) DeploymentMetrics(ctx context.Context, actor policies.Actor, id int64, span string) (
	m models.DeploymentMetrics, err error) {
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return m, err
	}
	of, known := metricsSpans[span]
	if !known {
		return m, models.Invalid("span", "must be one of %s", strings.Join(MetricsSpans, ", "))
	}
	m = models.DeploymentMetrics{Deployment: v.Deployment, Span: span, At: s.store.Now(), Steps: make([]models.RequestMetrics, of.steps),
		Parts: make([]models.PartTime, len(v.Plan.Parts))}
	m.Until = m.At.UTC().Truncate(of.length).Add(of.length)
	m.From = m.Until.Add(-time.Duration(of.steps) * of.length)
	counts, err := s.store.Read(ctx).DeploymentCounts(v.First(), of.stored, m.From)
	for _, c := range counts {
		if i := int(c.At.Sub(m.From) / of.length); i < of.steps { // another server's clock can be ahead
			m.Add(i, c)
		}
	}
	return m, err
}

// TotalMetrics are those of a deployment since its model was first deployed.
type TotalMetrics struct {
	FirstID int64 // the first deployment of the model
	models.RequestMetrics
}

// LiveDeploymentMetrics returns what was counted of all deployments with requests that have not ended, for the
// metrics of the portal.
func (s *Service) LiveDeploymentMetrics(ctx context.Context) (list []TotalMetrics, err error) {
	counts, err := s.store.Read(ctx).LiveDeploymentCounts()
	for _, c := range counts { // those of one deployment follow one another
		if len(list) == 0 || list[len(list)-1].FirstID != c.DeploymentID {
			list = append(list, TotalMetrics{FirstID: c.DeploymentID})
		}
		list[len(list)-1].Add(c)
	}
	return list, err
}
