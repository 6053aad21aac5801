package handlers

import (
	"weir/models"
	"weir/models/store"
	"weir/web"
)

// maxContents is how many bytes of content are cached. That of a page may be some
// megabytes.
const maxContents = 64 << 20

// shared caches what pages of many requests have in common.
type shared struct {
	nav      *store.Cache[int64, web.NavCounts] // by user
	contents *store.Cache[contentKey, web.Content]
}

// contentKey identifies the content of a page.
type contentKey struct {
	page, host, lang string
	can              models.PlatformPermissions
	audience         string // whose it is
}

func newShared(s *store.Store) shared {
	return shared{store.NewCache[int64, web.NavCounts](s, store.MaxCached),
		store.NewWeightedCache(s, maxContents, func(k contentKey, c web.Content) int {
			return 1000 + len(k.page) + len(k.host) + len(k.audience) + c.Size()
		})}
}
