# The command and nothing else: no shell, no user that is root, no other image. `make image` makes the folder bin/image, which is
# copied as it is: the static binary, the certificates of the authorities (for S3), /tmp (for imports), and /data.
FROM scratch
COPY --chown=65532:65532 . /
ENV COPPICE_STORE=/data/store COPPICE_STATE=/data/state XDG_CACHE_HOME=/data/cache
USER 65532:65532
VOLUME /data
EXPOSE 7070
ENTRYPOINT ["/coppice"]
CMD ["serve", "--addr", ":7070", "--token-file", "/tokens"]
