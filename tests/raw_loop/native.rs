//! The calls of librdkafka that rdkafka does not wrap, or not well: batches from the queue of one partition, records to a topic resolved
//! once, delivery reports waited for without spinning.
#![allow(unsafe_code, reason = "librdkafka is a C library; every block says why it holds")]

use rdkafka::ClientContext;
use rdkafka::bindings as c;
use rdkafka::client::Client;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};
use std::ffi::{CString, c_void};

const MOST: usize = 512;

/// The queue of one partition. Must be dropped before its client.
pub(crate) struct PartitionQueue(*mut c::rd_kafka_queue_t);

/// Where a producer's delivery reports come. Must be dropped before its client.
pub(crate) struct Reports(*mut c::rd_kafka_queue_t);

/// A topic resolved once. Must be dropped before its client, or with the process.
pub(crate) struct Topic(*mut c::rd_kafka_topic_t);

/// Records read and not yet handled.
pub(crate) struct Batch {
    messages: Vec<*mut c::rd_kafka_message_t>,
    filled: usize,
}

/// One record, for the length of a callback.
pub(crate) struct Record<'a>(&'a c::rd_kafka_message_t);

// SAFETY: librdkafka's queues are used by any thread under locks of their own.
unsafe impl Send for PartitionQueue {}

impl PartitionQueue {
    /// Cut off from the consumer's own queue. Before each assign: librdkafka undoes it when it stops fetching.
    pub(crate) fn split<C: ClientContext>(client: &Client<C>, topic: &str, partition: i32) -> PartitionQueue {
        let topic = CString::new(topic).expect("a topic's name");
        // SAFETY: the client lives during the calls; the name is a C string; null as destination means no forwarding.
        unsafe {
            let queue = c::rd_kafka_queue_get_partition(client.native_ptr(), topic.as_ptr(), partition);
            assert!(!queue.is_null(), "the partition has a queue");
            c::rd_kafka_queue_forward(queue, std::ptr::null_mut());
            PartitionQueue(queue)
        }
    }

    /// What is there, up to the size of the batch, without waiting.
    ///
    /// Right only without `enable.partition.eof`: librdkafka 2.12 would count the event "end of partition" as a record here and step
    /// over the next real one.
    pub(crate) fn read(&self, into: &mut Batch) {
        // SAFETY: room for `MOST` pointers is there; the call fills the first so many and returns how many.
        let read = unsafe { c::rd_kafka_consume_batch_queue(self.0, 0, into.messages.as_mut_ptr(), MOST) };
        into.filled = usize::try_from(read).expect("a batch can be read");
    }
}

impl Drop for PartitionQueue {
    fn drop(&mut self) {
        // SAFETY: our own reference, given up once.
        unsafe { c::rd_kafka_queue_destroy(self.0) }
    }
}

impl Reports {
    pub(crate) fn of(producer: &BaseProducer) -> Reports {
        // SAFETY: the client lives during the call; the answer is a reference of our own.
        Reports(unsafe { c::rd_kafka_queue_get_main(producer.client().native_ptr()) })
    }

    /// Serves the reports of one batch, or waits up to so many milliseconds for it. Whether there was one.
    ///
    /// rdkafka's `BaseProducer::poll` lasts all of its time, and spins through what is left of it below a millisecond: `poll(1 ms)` in a
    /// loop takes a whole core, which the broker needs.
    pub(crate) fn serve(&self, wait_ms: i32) -> bool {
        // SAFETY: the event is ours; its messages are looked at before it is destroyed, once.
        unsafe {
            let event = c::rd_kafka_queue_poll(self.0, wait_ms);
            if event.is_null() {
                return false;
            }
            if c::rd_kafka_event_type(event) == c::RD_KAFKA_EVENT_DR {
                while let Some(message) = c::rd_kafka_event_message_next(event).as_ref() {
                    let delivered = message.err == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
                    assert!(delivered, "produce: {}", RDKafkaErrorCode::from(message.err));
                }
            }
            c::rd_kafka_event_destroy(event);
        }
        true
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        // SAFETY: our own reference, given up once.
        unsafe { c::rd_kafka_queue_destroy(self.0) }
    }
}

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch { messages: vec![std::ptr::null_mut(); MOST], filled: 0 }
    }

    pub(crate) fn drain(&mut self, mut each: impl FnMut(&Record<'_>)) {
        for &message in &self.messages[..std::mem::take(&mut self.filled)] {
            // SAFETY: the call that filled the batch made these messages ours; each is destroyed once, after its last use.
            unsafe {
                match (*message).err {
                    RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => each(&Record(&*message)),
                    error => eprintln!("consume: {:?}", RDKafkaErrorCode::from(error)),
                }
                c::rd_kafka_message_destroy(message);
            }
        }
    }
}

impl Record<'_> {
    pub(crate) fn partition(&self) -> i32 {
        self.0.partition
    }

    pub(crate) fn offset(&self) -> i64 {
        self.0.offset
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        // SAFETY: key and length belong together, and live as long as the message.
        unsafe { bytes(self.0.key, self.0.key_len) }
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        // SAFETY: as above.
        unsafe { bytes(self.0.payload, self.0.len) }
    }

    pub(crate) fn timestamp(&self) -> i64 {
        let mut kind = c::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message lives during the call.
        unsafe { c::rd_kafka_message_timestamp(self.0, &raw mut kind) }
    }
}

impl Topic {
    pub(crate) fn resolve<C: ClientContext>(client: &Client<C>, name: &str) -> Topic {
        let name = CString::new(name).expect("a topic's name");
        // SAFETY: the client lives during the call; the name is a C string; null configuration means the client's defaults.
        let topic = unsafe { c::rd_kafka_topic_new(client.native_ptr(), name.as_ptr(), std::ptr::null_mut()) };
        assert!(!topic.is_null(), "the topic can be resolved");
        Topic(topic)
    }

    /// Hands over a copy. Timestamp 0 means now. Fails where the client's queue is full.
    pub(crate) fn produce(
        &self,
        to: &BaseProducer,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: i64,
    ) -> Result<(), RDKafkaErrorCode> {
        use c::rd_kafka_vtype_t as vtype;
        let arguments = [
            argument(vtype::RD_KAFKA_VTYPE_RKT, |u| u.rkt = self.0),
            argument(vtype::RD_KAFKA_VTYPE_MSGFLAGS, |u| u.i = c::RD_KAFKA_MSG_F_COPY),
            argument(vtype::RD_KAFKA_VTYPE_KEY, |u| u.mem = memory(key)),
            argument(vtype::RD_KAFKA_VTYPE_VALUE, |u| u.mem = memory(value)),
            argument(vtype::RD_KAFKA_VTYPE_TIMESTAMP, |u| u.i64_ = timestamp),
        ];
        // SAFETY: client and topic are alive; key and value are copied inside the call; the error is ours, read and destroyed once.
        unsafe {
            let error = c::rd_kafka_produceva(to.client().native_ptr(), arguments.as_ptr(), arguments.len());
            if error.is_null() {
                return Ok(());
            }
            let code = c::rd_kafka_error_code(error);
            c::rd_kafka_error_destroy(error);
            Err(code.into())
        }
    }
}

/// Makes the client send what waits for `linger.ms` now, and waits up to a millisecond for it to arrive.
pub(crate) fn hurry(producer: &BaseProducer) {
    // SAFETY: the client lives during the call. A wait of 0 would be over before the senders, which it wakes, look whether somebody flushes.
    unsafe { c::rd_kafka_flush(producer.client().native_ptr(), 1) };
}

fn argument(vtype: c::rd_kafka_vtype_t, set: impl FnOnce(&mut c::rd_kafka_vu_s__bindgen_ty_1)) -> c::rd_kafka_vu_t {
    let mut u = c::rd_kafka_vu_s__bindgen_ty_1 { _pad: [0; 64] };
    set(&mut u);
    c::rd_kafka_vu_t { vtype, u }
}

fn memory(bytes: Option<&[u8]>) -> c::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
    let (ptr, size) = bytes.map_or((std::ptr::null(), 0), |b| (b.as_ptr(), b.len()));
    c::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 { ptr: ptr.cast_mut().cast(), size }
}

/// # Safety
/// `start` is null, or the start of `length` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> Option<&'a [u8]> {
    // SAFETY: promised by the caller.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) })
}
