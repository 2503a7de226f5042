package nowhere // want `package nowhere stands on no floor`
