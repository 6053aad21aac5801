package metrics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"weir/models"
	"weir/models/store"
)

// maxProjects bounds the series of projects: those that use most of their quota.
const maxProjects = 100

// projectGauges are the metrics of projects with something in use. The label is the id of
// a project, because names are not for everyone who can read /metrics.
type projectGauges struct{ Sources }

var quotaDesc = prometheus.NewDesc("weir_project_quota_used_ratio", "Part of a quota of a project that is in use, from 0 to 1.",
	[]string{"project", "resource"}, nil)

// Describe lists the metrics.
func (g projectGauges) Describe(ch chan<- *prometheus.Desc) { ch <- quotaDesc }

// Collect reads what is in use once.
func (g projectGauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	list, err := usedQuotas(g.Store.Read(ctx))
	if err != nil {
		ch <- prometheus.NewInvalidMetric(quotaDesc, err)
		return
	}
	for _, p := range list {
		for resource, ratio := range p.ratios {
			samples(ch).gauge(quotaDesc, ratio, strconv.FormatInt(p.id, 10), resource)
		}
	}
}

// usedQuota is the part in use of each resource of a project's quota.
type usedQuota struct {
	id     int64
	ratios map[string]float64
	most   float64 // of the ratios
}

// usedQuotas lists the projects with something in use, those first that use most of a
// resource. Storage is not measured; what is unlimited or none has no ratio.
func usedQuotas(q *store.Queries) (list []usedQuota, err error) {
	inUse, err := q.InUseInProjects()
	if err != nil {
		return nil, err
	}
	projects, err := q.ProjectsByID(slices.Collect(maps.Keys(inUse)))
	for id, used := range inUse {
		u := usedQuota{id: id, ratios: map[string]float64{}}
		used.StorageMiB = 0
		quota := projects[id].Quota.Amounts()
		for i, a := range used.Amounts() {
			if a.Value > 0 && quota[i].Value > 0 && !models.IsUnlimited(quota[i].Value) {
				u.ratios[a.Name] = float64(a.Value) / float64(quota[i].Value)
				u.most = max(u.most, u.ratios[a.Name])
			}
		}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b usedQuota) int { return cmp.Or(cmp.Compare(b.most, a.most), cmp.Compare(a.id, b.id)) })
	return list[:min(len(list), maxProjects)], err
}
